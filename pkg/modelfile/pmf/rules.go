package pmf

// Rule is the stable id of a rule.
type Rule string

// The rules of documents.
const (
	RuleSize         Rule = "yaml-size"
	RuleSyntax       Rule = "yaml-syntax"
	RuleDocuments    Rule = "yaml-documents"
	RuleTag          Rule = "yaml-tag"
	RuleMerge        Rule = "yaml-merge"
	RuleDuplicateKey Rule = "duplicate-key"
	RuleMissingKey   Rule = "missing-key"
	RuleUnknownKey   Rule = "unknown-key"
	RuleType         Rule = "type"
)

// The rules of single values.
const (
	RuleFormatVersion  Rule = "format-version"
	RuleProducerName   Rule = "producer-name"
	RuleVersionFormat  Rule = "producer-version-format"
	RuleVersionValue   Rule = "producer-version"
	RuleHash           Rule = "hash"
	RulePath           Rule = "path"
	RuleStatus         Rule = "status"
	RuleEpoch          Rule = "epoch"
	RuleReference      Rule = "checkpoint-reference"
	RuleInitialisation Rule = "initialisation"
)

// The rules between values of a training.
const (
	RuleNoStart          Rule = "time-without-start"
	RuleNoLatest         Rule = "end-without-latest"
	RulePair             Rule = "time-without-epoch"
	RuleOrder            Rule = "time-order"
	RulePending          Rule = "pending-has-times"
	RuleEndStatus        Rule = "end-before-finish"
	RuleLatest           Rule = "latest-registered"
	RuleCheckpointEpoch  Rule = "checkpoint-epoch"
	RuleInitCheckpoint   Rule = "initialisation-checkpoint"
	RuleInitIdentity     Rule = "initialisation-identity"
	RuleInitialisationAt Rule = "initialisation-path"
	RuleCheckpointAt     Rule = "checkpoint-path"
)

// The rules of the tree.
const (
	RuleMetadata         Rule = "metadata-missing"
	RuleMetadataTwice    Rule = "metadata-twice"
	RuleConfiguration    Rule = "configuration-missing"
	RuleData             Rule = "data-missing"
	RuleBuildParameters  Rule = "build-parameters"
	RuleFolder           Rule = "folder-missing"
	RuleCheckpoint       Rule = "checkpoint-missing"
	RuleUnregistered     Rule = "checkpoint-unregistered"
	RuleCheckpointFolder Rule = "checkpoints-only-files"
	RuleNestedCheckpoint Rule = "nested-checkpoints"
	RuleInitNoPMF        Rule = "initialisation-no-tree"
	RuleInitNoFile       Rule = "initialisation-no-file"
	RuleInitFolder       Rule = "initialisation-only-files"
	RuleInitExtra        Rule = "initialisation-one-file"
	RuleInitNull         Rule = "initialisation-null"
	RuleNesting          Rule = "nesting"
	RuleSpecial          Rule = "special-file"
	RuleChecksum         Rule = "checksum"
)

// Rules says what each rule wants. A rule that only ever warns says so.
var Rules = map[Rule]string{
	RuleSize:         "metadata.yaml is at most 1 MiB long",
	RuleSyntax:       "metadata.yaml is YAML, in UTF-8",
	RuleDocuments:    "metadata.yaml is one document",
	RuleTag:          "values have no tags but YAML's own",
	RuleMerge:        "mappings have no merge keys (<<)",
	RuleDuplicateKey: "a mapping has no key twice",
	RuleMissingKey:   "a mapping has all of its keys",
	RuleUnknownKey:   "a mapping has no keys but its own (a warning)",
	RuleType:         "a value has its type",

	RuleFormatVersion:  "format.version is 1.0.0",
	RuleProducerName:   "the producer's name is a letter, then letters, digits and _",
	RuleVersionFormat:  "the producer's version has the format py_pa (a warning)",
	RuleVersionValue:   "the producer's version is one of PEP 440, where its format is py_pa",
	RuleHash:           "a hash is an MD5 of 32 lower-case hex digits",
	RulePath:           "a path is relative, inside the tree, separated by slashes, and does not begin with ./",
	RuleStatus:         "the status is pending, running, finished or failed",
	RuleEpoch:          "an epoch is 0 or more",
	RuleReference:      "a checkpoint's reference is a string or an integer",
	RuleInitialisation: "initialisation is null, or has one of the keys pmf and file",

	RuleNoStart:          "what has a latest or an end has a start",
	RuleNoLatest:         "what has an end has a latest",
	RulePair:             "a time comes with an epoch, and an epoch with a time",
	RuleOrder:            "start, latest and end are in order",
	RulePending:          "a pending training has no times and epochs",
	RuleEndStatus:        "only a finished or failed training has an end",
	RuleLatest:           "latest is a registered checkpoint",
	RuleCheckpointEpoch:  "no checkpoint's epoch is above latest_epoch",
	RuleInitCheckpoint:   "initialisation.pmf.checkpoint is registered in the nested tree",
	RuleInitIdentity:     "initialisation.pmf has the nested tree's name and id (a warning)",
	RuleInitialisationAt: "initialisation's path is what lies in data/initialisation (a warning)",
	RuleCheckpointAt:     "a checkpoint's path is its file in data/checkpoints (a warning)",

	RuleMetadata:         "the root holds the file metadata.yaml",
	RuleMetadataTwice:    "the root holds one of metadata.yaml and Metadata.yaml",
	RuleConfiguration:    "the configuration is a file in the root",
	RuleData:             "the root holds the folder data",
	RuleBuildParameters:  "data/build_parameters.yaml, where there is one, is a file that holds a mapping",
	RuleFolder:           "data holds the folders checkpoints and initialisation (a warning: they may be empty)",
	RuleCheckpoint:       "a registered checkpoint's file is in data/checkpoints",
	RuleUnregistered:     "files in data/checkpoints are registered (a warning)",
	RuleCheckpointFolder: "data/checkpoints is a folder that holds files only",
	RuleNestedCheckpoint: "a nested tree has no checkpoints (a warning)",
	RuleInitNoPMF:        "data/initialisation holds a tree where initialisation has the key pmf",
	RuleInitNoFile:       "data/initialisation holds the file that initialisation.file names",
	RuleInitFolder:       "data/initialisation is a folder that holds files only, unless it is a tree",
	RuleInitExtra:        "data/initialisation holds one file, unless it is a tree",
	RuleInitNull:         "data/initialisation is empty where initialisation is null (a warning)",
	RuleNesting:          "trees nest at most 16 deep",
	RuleSpecial:          "the tree holds files, folders and symlinks only",
	RuleChecksum:         "a file has the MD5 that metadata.yaml records",
}
