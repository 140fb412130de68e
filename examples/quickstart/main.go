// Quickstart trains a small network on Fisher's irises and writes it as an
// unpacked carton:
//
//	go run ./examples/quickstart DIR
//
// It prints how well the model does and its model hash. Training is
// deterministic: the hash is the same on every machine. run.sh in this folder
// takes the carton to a registry's image layout and back.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: quickstart DIR")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string) error {
	flowers, err := readFlowers(irisCSV)
	if err != nil {
		return err
	}
	train, test := split(flowers)
	n := fit(train)
	fmt.Printf("trained on %d flowers: %d right; of %d it never saw: %d right\n",
		len(train), n.correct(train), len(test), n.correct(test))

	hash, err := writeCarton(ctx, dir, n, test)
	if err != nil {
		return err
	}
	fmt.Printf("wrote %s, model hash %s\n", dir, hash)
	return nil
}
