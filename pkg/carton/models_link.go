package carton

// An image of a carton has one symlink that is no member and that MANIFEST does
// not list: from the folder that KServe mounts of every image to the one that a
// carton's files are in. Where the image is mounted, or unpacked by another
// program, the folder is the carton all the same.
const (
	ModelsName   = "models"
	ModelsTarget = "model"
)

// isModelsLink reports whether a file of a folder is that symlink.
func (m *Manifest) isModelsLink(path, target string) bool {
	_, listed := m.Lookup(path)
	return path == ModelsName && target == ModelsTarget && !listed
}
