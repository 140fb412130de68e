// Package convert is the mapping between cartons and OCI artifacts: which layer
// a member becomes, what the layers, annotations and config are called and say,
// and the way back.
//
// [Build] turns any carton.Source into a layout.Artifact; [Open] turns an
// artifact into a carton.Source. Both are pure functions of content: one carton
// has one digest a set of options, whether it comes as a zip, a folder, thin or
// relinked, so nothing that only some forms know (a date, a CRC, a compression)
// reaches a digest.
//
// Where it is asked to, Build makes the image form beside an artifact: an OCI image
// that unpacks to the carton, for runtimes that mount images and no artifacts. It
// shares the artifact's tar layers, and has a symlink models to model besides, which
// is no member (image_models_link.go). [Image] makes the same of an artifact that is
// stored already. An image form is read as the carton that it is.
//
// [Copy] is the other way to store an artifact elsewhere: as it is. Tar layers that
// are copied or shared with an image are published by nobody who has not read them:
// other programs unpack them without asking MANIFEST, so their bytes must be what
// MANIFEST and the mapping say, whoever wrote them. Of an artifact that says it is
// of the mapping, every reader wants that to the byte.
//
// The mapping is numbered; this is mapping 1. An image manifest says so in the
// annotation run.carton.mapping. What mapping 1 produces never changes, and
// [Open] refuses a number that it does not know. docs/mapping.md describes it
// for other implementations; its tables are those in category.go (folder to
// category), internal/filekind (file name to category and format), annotations.go
// (carton.toml to annotations and config), mediatype.go and image.go, and a test
// compares them.
//
// Files: build*.go, bundling.go and layer.go write, source*.go and open.go read,
// tar_*.go check tar layers while they are read.
package convert
