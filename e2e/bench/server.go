package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
)

// server is the child process that is transferred to and from: see
// e2e/bench/server.
type server struct {
	Control, Plain, Slow, Far, Synthetic, CAFile string

	cmd   *exec.Cmd
	stdin io.Closer
}

func startServer(ctx context.Context, path, dir string) (*server, error) {
	cmd := exec.CommandContext(ctx, path, "-dir", dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	return s, json.Unmarshal(line, s)
}

// close ends the server.
func (s *server) close() {
	s.stdin.Close()
	_ = s.cmd.Wait()
}

// tell asks the control address, and reads JSON into answer unless it is nil.
func (s *server) tell(ctx context.Context, method, path string, query url.Values, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.Control+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("server: %s: %s: %s", path, resp.Status, body)
	}
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(body, answer)
}

// fresh gives the registry an empty storage.
func (s *server) fresh(ctx context.Context) error {
	return s.tell(ctx, http.MethodPost, "/fresh", nil, nil)
}

// reset forgets what was counted.
func (s *server) reset(ctx context.Context) error {
	return s.tell(ctx, http.MethodPost, "/reset", nil, nil)
}

// wire returns how many bytes came in and went out since the last reset.
func (s *server) wire(ctx context.Context) (in, out int64, err error) {
	var w struct{ In, Out int64 }
	err = s.tell(ctx, http.MethodGet, "/wire", nil, &w)
	return w.In, w.Out, err
}

// reached returns a function that waits until so many bytes have passed since
// the last reset; direction is in or out.
func (s *server) reached(direction string, bytes int64) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		return s.tell(ctx, http.MethodGet, "/reached", url.Values{direction: {fmt.Sprint(bytes)}}, nil)
	}
}

// made is a carton that the server makes when it is asked for.
type made struct {
	Repository string
	TensorSum  string // sha256 of the tensor in the middle
}

func (s *server) describe(ctx context.Context, size, tensor int64, hashed bool) (made, error) {
	var m made
	err := s.tell(ctx, http.MethodPost, "/describe", url.Values{
		"size": {fmt.Sprint(size)}, "tensor": {fmt.Sprint(tensor)}, "hashed": {fmt.Sprint(hashed)},
	}, &m)
	return m, err
}
