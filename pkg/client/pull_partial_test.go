package client

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/convert"
)

// A pull that a proxy answers in the registry's place, once all of the model but a
// little is there, leaves what is there: whatever the answer, and whatever is made.
func TestAProxysAnswerLeavesThePartial(t *testing.T) {
	testenv.Heavy(t)
	page := "<html>sign in to the network</html>"
	for name, answer := range map[string]registrytest.Effect{
		"an error page":        registrytest.Answer(200, page, "Content-Type", "text/html"),
		"nothing":              registrytest.Answer(200, "", "Content-Length", "0"),
		"a part of the page":   registrytest.Answer(206, page, "Content-Range", "bytes 0-34/35"),
		"no size":              registrytest.Answer(200, page, "Transfer-Encoding", "chunked"),
		"another size, a part": registrytest.Answer(206, "xx", "Content-Range", "bytes 0-1/7"),
		"not found":            registrytest.Answer(404, page),
		"forbidden":            registrytest.Answer(403, page),
		"teapot":               registrytest.Answer(418, page),
		"past the end":         registrytest.Answer(416, "", "Content-Range", "bytes */35"),
		"nothing new":          registrytest.Answer(304, ""),
	} {
		for _, unpack := range []bool{false, true} {
			for _, form := range []convert.Form{convert.FormRaw, convert.FormTar} {
				what := fmt.Sprintf("%s, unpack %v, %v", name, unpack, form)
				r := registrytest.New(t, registrytest.Config{})
				ref, _ := pushLarge(t, r, convert.Options{Layers: form})
				dir := t.TempDir()
				opts := PullOptions{Output: filepath.Join(dir, "m")}
				opts.Concurrency = 2
				if unpack {
					opts.Output, opts.Unpack = "", opts.Output
				}
				// Once in the middle, once from the beginning.
				for _, after := range []int{9, 3} {
					r.Break(registrytest.Fault{Methods: "GET", Path: "/blobs/sha256:", After: after, Times: -1, Effect: answer})
					_, err := fresh(impatient()).Pull(t.Context(), ref, opts)
					r.Mend()
					if _, gone := os.Stat(filepath.Join(dir, "m.partial")); err == nil || gone != nil {
						t.Errorf("%s, after %d requests: the partial is gone: %v; got %v", what, after, gone, err)
					}
				}
				result, err := fresh(impatient()).Pull(t.Context(), ref, opts)
				if err != nil || result.BytesResumed < mib {
					t.Errorf("%s: got %+v, %v", what, result, err)
				}
			}
		}
	}
}
