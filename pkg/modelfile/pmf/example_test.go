package pmf_test

import (
	"errors"
	"fmt"
	"strings"
	"testing/fstest"

	"github.com/carton-oci/carton-oci/pkg/modelfile/pmf"
)

func ExampleRead() {
	tree := exampleTree() // or os.DirFS("folder")
	m, err := pmf.Read(tree, pmf.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Name, "by", m.Producer.Name, m.Producer.Version, "is", m.Training.Status)
	fmt.Println(len(m.Sums()), "files have a recorded MD5")
	// Output:
	// model_name by faster_rcnn 0.4.0 is running
	// 5 files have a recorded MD5
}

func ExampleInvalid() {
	tree := exampleTree()
	text := string(tree["metadata.yaml"].Data)
	text = strings.NewReplacer("running", "walking", "start_epoch: 0", "start_epoch: 13").Replace(text)
	tree["metadata.yaml"] = &fstest.MapFile{Data: []byte(text)}

	_, err := pmf.Read(tree, pmf.Options{})
	var invalid *pmf.Invalid
	if errors.As(err, &invalid) {
		for _, v := range invalid.Violations {
			fmt.Println(v)
		}
	}
	// Output:
	// metadata.yaml: model.training.status: line 40: is walking, and must be pending, running, finished or failed (status)
	// metadata.yaml: model.training.latest_epoch: line 36: is 12, before start_epoch, 13 (time-order)
}
