package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

func (s *session) keygenCommand() *cli.Command {
	name := ""
	return &cli.Command{
		Name:  "keygen",
		Usage: "make a key pair to sign with",
		UsageText: `carton-oci keygen
carton-oci keygen -o release`,
		Description: `Writes NAME.key, the private key as cosign encrypts it, which only its owner can
read, and NAME.pub, the public key for who verifies: ECDSA on P-256. The
password is asked for on a terminal, or read from COSIGN_PASSWORD. Nothing is
replaced.`,
		Flags:  s.flags([]cli.Flag{text(&name, "output", "write `NAME`.key and NAME.pub (carton)", "o")}),
		Action: s.command(func(c *cli.Context) error { return s.runKeygen(c, name) }),
	}
}

func (s *session) runKeygen(c *cli.Context, name string) error {
	name = cmp.Or(name, "carton")
	private, public := name+".key", name+".pub"
	for _, file := range []string{private, public} {
		if _, err := os.Lstat(file); err == nil {
			err := fmt.Errorf("keygen: %s: %w", file, place.ErrExist)
			return withHint(err, "a key that is gone can't be made again: name another file with -o NAME")
		}
	}
	password, err := s.keyPassword(c, true)
	if err != nil {
		return fmt.Errorf("keygen: %w", err)
	}
	key, err := signature.GenerateKey()
	if err != nil {
		return fmt.Errorf("keygen: %w", err)
	}
	secretText, err := signature.EncryptPrivateKey(key, password)
	if err != nil {
		return fmt.Errorf("keygen: %w", err)
	}
	pub, err := signature.NewPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("keygen: %w", err)
	}
	publicText, err := pub.PEM()
	if err != nil {
		return fmt.Errorf("keygen: %w", err)
	}
	if err := errors.Join(writeNew(private, secretText, 0o600), writeNew(public, publicText, 0o644)); err != nil {
		return fmt.Errorf("keygen: %w", err)
	}
	s.result(map[string]string{"privateKey": private, "publicKey": public, "keyId": pub.ID()}, []string{public},
		func() {
			s.fields([2]string{"private key", private}, [2]string{"public key", public}, [2]string{"key id", pub.ID()})
		})
	return nil
}

// writeNew writes a file that is not there yet, with a mode from its first byte on:
// what is put in its place by a rename would be readable by others until then.
func writeNew(name string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
