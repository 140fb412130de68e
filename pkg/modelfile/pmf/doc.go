// Package pmf reads and checks models in the Plums Model Format, version 1.0.0:
// a folder that says how a model was trained, and holds what came of it.
//
//	metadata.yaml              what follows (or Metadata.yaml)
//	<configuration file>       what the producer was configured with
//	data/
//	  build_parameters.yaml    what a consumer needs to build the model (optional)
//	  checkpoints/             files
//	  initialisation/          empty, one file, or a tree like this without checkpoints
//
// Further files may lie in the root and in data/, and nowhere else.
//
// # Rules that this package keeps
//
// All of what is wrong is reported at once, each [Violation] with the rule that
// is broken, the path in the document and the line. [Rules] lists the rules;
// their ids never change. What the format allows, but no writer of it produces,
// is a warning; [Options] Strict makes violations of those.
//
// The authority is the text of the specification, and where it is silent the
// validator of its library, plums 0.5.2 (plums/model/validation/*.py). Where
// the two disagree, both are accepted: the library requires
// build_parameters.yaml, the text calls it optional; the text writes
// Metadata.yaml, the library metadata.yaml; the library lets a name be null,
// the text knows only names.
//
// A plain scalar is what PyYAML makes of it, which is YAML 1.1 and which wrote
// the document: 12 and "12" are different references, 1e5 is a string, yes is a
// boolean. Hashes are MD5, as the format wants; they tell accidents from
// intact files, and no more.
//
// Documents come from strangers. One is at most [MaxMetadataBytes] long; it is
// walked along the schema and never expanded, so that aliases and nesting cost
// what their bytes cost; trees nest at most [MaxNesting] deep.
package pmf
