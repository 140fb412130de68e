// Go pushes a carton, opens it where it is now, copies it and pulls the copy, with
// one client that keeps connections and tokens:
//
//	go run ./examples/go model.carton localhost:5000/org/m:1 localhost:5000/org/copy:1 pulled.carton
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: go SOURCE REFERENCE COPY FILE")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout, os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		for _, h := range hint.Of(err) { // what can be done about it
			fmt.Fprintln(os.Stderr, "hint:", h)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, source, ref, copied, file string) error {
	c, err := client.New(client.Options{}) // with Docker's credentials, as every field's zero value says
	if err != nil {
		return err
	}
	defer c.Close()
	pushed, err := c.Push(ctx, source, ref, client.PushOptions{NoClobber: true})
	if err != nil {
		return err
	}
	src, err := c.Open(ctx, ref, client.OpenOptions{})
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := carton.ReadInfo(ctx, src) // a few kilobytes of it are read
	if err != nil {
		return err
	}
	if _, err := c.Copy(ctx, ref, copied, client.CopyOptions{}); err != nil {
		return err
	}
	pulled, err := c.Pull(ctx, copied, client.PullOptions{Output: file, ModelHash: pushed.ModelHash})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %q, %s, %d bytes were sent\n", pulled.Path, info.ModelName, pushed.Digest,
		pushed.BytesUploaded)
	return nil
}
