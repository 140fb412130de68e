package pmf

// Rule is the stable id of a rule.
type Rule string

// Rules says what each rule wants. A rule that only ever warns says so.
var Rules = map[Rule]string{}

func rule(id Rule, wants string) Rule {
	Rules[id] = wants
	return id
}

// The rules of documents.
var (
	RuleSize         = rule("yaml-size", "metadata.yaml is at most 1 MiB long")
	RuleSyntax       = rule("yaml-syntax", "metadata.yaml is YAML, in UTF-8")
	RuleDocuments    = rule("yaml-documents", "metadata.yaml is one document")
	RuleTag          = rule("yaml-tag", "values have no tags but YAML's own")
	RuleMerge        = rule("yaml-merge", "mappings have no merge keys (<<)")
	RuleDuplicateKey = rule("duplicate-key", "a mapping has no key twice")
	RuleMissingKey   = rule("missing-key", "a mapping has all of its keys")
	RuleUnknownKey   = rule("unknown-key", "a mapping has no keys but its own (a warning)")
	RuleType         = rule("type", "a value has its type")
)

// The rules of single values.
var (
	RuleFormatVersion = rule("format-version", "format.version is 1.0.0")
	RuleProducerName  = rule("producer-name", "the producer's name is a letter, then letters, digits and _")
	RuleVersionFormat = rule("producer-version-format", "the producer's version has the format py_pa (a warning)")
	RuleVersionValue  = rule("producer-version",
		"the producer's version is one of PEP 440, where its format is py_pa")
	RuleHash = rule("hash", "a hash is an MD5 of 32 lower-case hex digits")
	RulePath = rule("path",
		"a path is relative, inside the tree, separated by slashes, and does not begin with ./")
	RuleStatus         = rule("status", "the status is pending, running, finished or failed")
	RuleEpoch          = rule("epoch", "an epoch is 0 or more")
	RuleReference      = rule("checkpoint-reference", "a checkpoint's reference is a string or an integer")
	RuleInitialisation = rule("initialisation", "initialisation is null, or has one of the keys pmf and file")
)

// The rules between values of a training.
var (
	RuleNoStart         = rule("time-without-start", "what has a latest or an end has a start")
	RuleNoLatest        = rule("end-without-latest", "what has an end has a latest")
	RulePair            = rule("time-without-epoch", "a time comes with an epoch, and an epoch with a time")
	RuleOrder           = rule("time-order", "start, latest and end are in order")
	RulePending         = rule("pending-has-times", "a pending training has no times and epochs")
	RuleEndStatus       = rule("end-before-finish", "only a finished or failed training has an end")
	RuleLatest          = rule("latest-registered", "latest is a registered checkpoint")
	RuleCheckpointEpoch = rule("checkpoint-epoch", "no checkpoint's epoch is above latest_epoch")
	RuleInitCheckpoint  = rule("initialisation-checkpoint",
		"initialisation.pmf.checkpoint is registered in the nested tree")
	RuleInitIdentity = rule("initialisation-identity",
		"initialisation.pmf has the nested tree's name and id (a warning)")
	RuleInitialisationAt = rule("initialisation-path",
		"initialisation's path is what lies in data/initialisation (a warning)")
	RuleCheckpointAt = rule("checkpoint-path", "a checkpoint's path is its file in data/checkpoints (a warning)")
)

// The rules of the tree.
var (
	RuleMetadata        = rule("metadata-missing", "the root holds the file metadata.yaml")
	RuleMetadataTwice   = rule("metadata-twice", "the root holds one of metadata.yaml and Metadata.yaml")
	RuleConfiguration   = rule("configuration-missing", "the configuration is a file in the root")
	RuleData            = rule("data-missing", "the root holds the folder data")
	RuleBuildParameters = rule("build-parameters",
		"data/build_parameters.yaml, where there is one, is a file that holds a mapping")
	RuleFolder = rule("folder-missing",
		"data holds the folders checkpoints and initialisation (a warning: they may be empty)")
	RuleCheckpoint       = rule("checkpoint-missing", "a registered checkpoint's file is in data/checkpoints")
	RuleUnregistered     = rule("checkpoint-unregistered", "files in data/checkpoints are registered (a warning)")
	RuleCheckpointFolder = rule("checkpoints-only-files", "data/checkpoints is a folder that holds files only")
	RuleNestedCheckpoint = rule("nested-checkpoints", "a nested tree has no checkpoints (a warning)")
	RuleInitNoPMF        = rule("initialisation-no-tree",
		"data/initialisation holds a tree where initialisation has the key pmf")
	RuleInitNoFile = rule("initialisation-no-file",
		"data/initialisation holds the file that initialisation.file names")
	RuleInitFolder = rule("initialisation-only-files",
		"data/initialisation is a folder that holds files only, unless it is a tree")
	RuleInitExtra = rule("initialisation-one-file", "data/initialisation holds one file, unless it is a tree")
	RuleInitNull  = rule("initialisation-null",
		"data/initialisation is empty where initialisation is null (a warning)")
	RuleNesting  = rule("nesting", "trees nest at most 16 deep")
	RuleSpecial  = rule("special-file", "the tree holds files, folders and symlinks only")
	RuleChecksum = rule("checksum", "a file has the MD5 that metadata.yaml records")
)
