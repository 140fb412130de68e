package convert

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
)

// cache remembers what was learnt by reading content, by a key that names all
// that the answer depends on. It lives in a folder; "" remembers nothing. A
// cache that can't be read or written costs time and nothing else, so it has no
// errors.
type cache string

// maxCacheBytes is the largest file that is read back.
const maxCacheBytes = 1 << 20

// get fills v with what was remembered. A file that is damaged, or that was
// written for another key, is as good as none: it begins with the hash of the
// key and of what follows.
func (c cache) get(key string, v any) bool {
	if c == "" {
		return false
	}
	b, err := os.ReadFile(c.file(key))
	if err != nil || len(b) > maxCacheBytes {
		return false
	}
	sum, value, ok := bytes.Cut(b, []byte("\n"))
	return ok && string(sum) == checksum(key, value) && json.Unmarshal(value, v) == nil
}

// put remembers v. The file appears whole or not at all, readable by the user
// alone: hashes of content tell what a model is made of.
func (c cache) put(key string, v any) {
	if c == "" {
		return
	}
	name := c.file(key)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), "new-*") // mode 0600
	if err != nil {
		return
	}
	value := marshal(v)
	_, err = tmp.WriteString(checksum(key, value) + "\n" + string(value))
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
}

func (c cache) file(key string) string {
	return filepath.Join(string(c), "mapping-"+Mapping, checksum(key, nil))
}

func checksum(key string, value []byte) string {
	h := sha256.New()
	h.Write([]byte(key))
	h.Write([]byte{0})
	h.Write(value)
	return hex.EncodeToString(h.Sum(nil))
}
