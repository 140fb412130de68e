package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

// passwordVariable holds the password of an encrypted private key, as cosign has it.
const passwordVariable = "COSIGN_PASSWORD"

// signerWords say with what is signed, as the command line has it.
type signerWords struct{ key, cert, chain string }

// signerFlags are those of commands that sign; key is what the key's flag is called.
func signerFlags(w *signerWords, key string) []cli.Flag {
	return inCategory(forSigned,
		text(&w.key, key, "sign with the private key in `KEY`: a file (PEM), env://NAME, or - for standard input"),
		text(&w.cert, "cert", "the certificate in `FILE` (PEM) is the key's"),
		text(&w.chain, "chain", "the certificates in `FILE` (PEM) lead from that to a root"),
	)
}

// signer reads the key that a command line signs with, nil where it names none.
func (s *session) signer(c *cli.Context, w signerWords) (*signature.Signer, error) {
	switch {
	case w.cert == "" && w.chain != "":
		return nil, usagef(c.Command.Name, "--chain needs --cert")
	case w.key == "" && w.cert != "":
		return nil, usagef(c.Command.Name, "--cert is of no use without a key to sign with")
	case w.key == "":
		return nil, nil //nolint:nilnil // documented
	}
	key, err := s.privateKey(c, w.key)
	if err != nil {
		return nil, err
	}
	var certificates []*x509.Certificate
	for _, name := range []string{w.cert, w.chain} {
		if name == "" {
			continue
		}
		list, err := readKeys(c, name, signature.ParseCertificates)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, list...)
	}
	signer, err := signature.NewSigner(key, certificates)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Command.Name, err)
	}
	return signer, nil
}

// privateKey reads a private key, and warns of one that others can read.
func (s *session) privateKey(c *cli.Context, word string) (*ecdsa.PrivateKey, error) {
	raw, err := readWord(c.Context, word)
	if err != nil {
		return nil, fmt.Errorf("%s: private key: %w", c.Command.Name, err)
	}
	if isFileName(word) && runtime.GOOS != "windows" {
		if fi, err := os.Stat(word); err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o007 != 0 {
			s.warnf("%s: everybody on this machine can read this private key (mode %04o)", word, fi.Mode().Perm())
			s.hintf("chmod 600 %s", word)
		}
	}
	key, err := signature.ParsePrivateKey(raw, func() ([]byte, error) { return s.keyPassword(c, false) })
	if err != nil {
		return nil, fmt.Errorf("%s: private key %s: %w", c.Command.Name, shownWord(word), err)
	}
	return key, nil
}

// keyPassword finds the password of a private key; a new one is typed twice.
func (s *session) keyPassword(c *cli.Context, isNew bool) ([]byte, error) {
	if word, ok := os.LookupEnv(passwordVariable); ok {
		secret.Add(word)
		return []byte(word), nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		err := &signature.Error{Kind: signature.ErrPassword, Msg: "is encrypted, and no password was given"}
		if isNew {
			err.Msg = "got no password for the new key"
		}
		return nil, withHint(err, "the password is read from %s, or from a terminal", passwordVariable)
	}
	word, err := askPassword(c.Context, s.err)
	if err == nil && isNew {
		var again string
		if again, err = askPassword(c.Context, s.err); err == nil && again != word {
			err = usagef(c.Command.Name, "the passwords differ")
		}
	}
	secret.Add(word)
	return []byte(word), err
}

// trustWords say whose signature is wanted, as the command line has it.
type trustWords struct {
	keys, chains []string
	identity     string
	file         string
}

// trustFlags are those of commands that ask who signed.
func trustFlags(w *trustWords) []cli.Flag {
	return inCategory(forSigned,
		list(&w.keys, "key", "refuse what is not signed with the public key in `KEY`: a file (PEM), env://NAME, or -"),
		list(&w.chains, "certificate-chain", "or with a certificate that leads to one in `FILE` (PEM)"),
		text(&w.identity, "certificate-identity", "with --certificate-chain: which names `WHO`"),
		text(&w.file, "signature", "the signature is in `FILE`, and not where it belongs"),
	)
}

// trust reads the keys that a command line names, nil where it names none.
func (w trustWords) trust(c *cli.Context) (*signature.Trust, error) {
	t := &signature.Trust{Identity: w.identity}
	for _, name := range w.keys {
		keys, err := readKeys(c, name, signature.ParsePublicKeys)
		if err != nil {
			return nil, err
		}
		t.Keys = append(t.Keys, keys...)
	}
	for _, name := range w.chains {
		list, err := readKeys(c, name, signature.ParseCertificates)
		if err != nil {
			return nil, err
		}
		t.Certificates = append(t.Certificates, list...)
	}
	switch {
	case w.identity != "" && len(t.Certificates) == 0:
		return nil, usagef(c.Command.Name, "--certificate-identity needs --certificate-chain")
	case !t.IsZero():
		return t, nil
	case w.file != "":
		return nil, usagef(c.Command.Name, "--signature needs --key or --certificate-chain")
	}
	return nil, nil //nolint:nilnil // documented
}

// readKeys reads public keys or certificates.
func readKeys[T any](c *cli.Context, word string, parse func([]byte) ([]T, error)) ([]T, error) {
	raw, err := readWord(c.Context, word)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Command.Name, err)
	}
	list, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", c.Command.Name, shownWord(word), err)
	}
	return list, nil
}

const envScheme = "env://"

func isFileName(word string) bool { return word != "-" && !strings.HasPrefix(word, envScheme) }

// shownWord says which key is meant, without what may be one by mistake.
func shownWord(word string) string {
	if mayBeKey(word) {
		return "on the command line"
	}
	return quoted(word)
}

// mayBeKey reports whether a word that should name a key may be one: in PEM, or what is
// inside of PEM. Names of files and variables are hardly ever that long, and of such
// letters alone.
func mayBeKey(word string) bool {
	if strings.Contains(word, "-----BEGIN") {
		return true
	}
	word = strings.TrimPrefix(strings.TrimPrefix(word, envScheme), "./")
	return len(word) >= 64 && !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			!strings.ContainsRune("+/=-_ \r\n", r)
	})
}

// errKeyItself is about a word that may be a key, and is shown to nobody.
func errKeyItself() error {
	err := &usageError{errors.New("got what seems to be a key itself, where everybody on this machine can read it")}
	return withHint(err, "name a file that holds it, or an environment variable: env://NAME, without a $")
}

// readWord reads a key or certificates from where the command line says.
func readWord(ctx context.Context, word string) ([]byte, error) {
	if name, ok := strings.CutPrefix(word, envScheme); ok {
		value, ok := os.LookupEnv(name)
		if !ok && mayBeKey(word) {
			return nil, errKeyItself()
		}
		if !ok {
			return nil, &usageError{fmt.Errorf("the environment variable %s is not set", quoted(name))}
		}
		return []byte(value), nil
	}
	if mayBeKey(word) {
		if _, err := os.Lstat(word); err != nil {
			return nil, errKeyItself()
		}
	}
	if word != "-" {
		return localfile.Read(word, signature.MaxKeyBytes)
	}
	text, err := wait(ctx, func() (string, error) {
		raw, err := io.ReadAll(io.LimitReader(os.Stdin, signature.MaxKeyBytes+1))
		return string(raw), err
	})
	if err == nil && len(text) > signature.MaxKeyBytes {
		err = fmt.Errorf("standard input has more than %d bytes, want a key", signature.MaxKeyBytes)
	}
	return []byte(text), err
}
