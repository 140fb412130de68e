package inspect_test

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
)

// Every tensor of a carton, from headers alone.
func ExampleTensors() {
	list := func(ctx context.Context, src carton.Source) error {
		tensors, notes, err := inspect.Tensors(ctx, src, inspect.Options{})
		if err != nil {
			return err
		}
		for _, t := range tensors {
			fmt.Println(t.Name, t.DType, t.Shape, t.Bytes, t.Member)
		}
		for _, n := range notes {
			fmt.Fprintln(os.Stderr, n.Member, n.Text)
		}
		return nil
	}
	_ = list
}

// One tensor's elements, which cost little more than themselves.
func ExampleOpen() {
	fetch := func(ctx context.Context, src carton.Source, name string, w io.Writer) error {
		t, _, err := inspect.Find(ctx, src, name, inspect.Options{})
		if err != nil {
			return err
		}
		r, verified, err := inspect.Open(ctx, src, t)
		if err != nil {
			return err
		}
		defer r.Close()
		if _, err := io.Copy(w, r); err != nil {
			return err
		}
		if !verified {
			fmt.Fprintln(os.Stderr, "only a range was read: nothing says that it is right")
		}
		return nil
	}
	_ = fetch
}

func ExampleParamSize() {
	fmt.Println(inspect.ParamSize(376_940), inspect.ParamSize(8_030_261_248))
	// Output: 376.9K 8B
}
