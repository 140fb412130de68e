package pack

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// IgnoreFile is the file in the root of a folder that is packed which says what
// of it is left out: one pattern a line. A line that begins with # is a comment;
// one that begins with ! brings back what its pattern matches.
const IgnoreFile = ".cartonignore"

// MaxIgnoreBytes is the largest [IgnoreFile].
const MaxIgnoreBytes = 1 << 20

// LeftOut is a pattern of files and folders that are no part of a model.
type LeftOut struct {
	Pattern string
	// What they are, in a few words.
	What string
}

// LeftOutByDefault are the files and folders that tools leave in a model's
// folder: what they are on one machine and in one folder, and not what the model
// is. Without them one revision of one repository has the same model hash for
// everybody, however it was fetched (docs/packing.md says so line by line).
//
// Names are not on the list because they look like a tool's: carton.lock, and the
// locks of package managers, are a model's; a .pyc beside its source may be all
// that is shipped, and one in __pycache__ is nothing without its source.
var LeftOutByDefault = []LeftOut{
	{".git", "version control"},
	{".hg", "version control"},
	{".svn", "version control"},
	{".jj", "version control"},
	{".gitattributes", "for git alone, and not everything that fetches from a hub fetches it"},
	{".gitignore", "for git alone"},
	{".gitmodules", "for git alone"},
	{".gitignore.lock", "a lock of the Hugging Face tools"},
	{"**/.cache/huggingface/download", "what the Hugging Face tools note of a download"},
	{"**/.cache/huggingface/upload", "what the Hugging Face tools note of an upload"},
	{"**/.cache/huggingface/trees", "lists that the Hugging Face tools keep"},
	{"**/.cache/huggingface/CACHEDIR.TAG", "a mark of the Hugging Face tools"},
	{"**/.huggingface/download", "what older Hugging Face tools note of a download"},
	{"**/.huggingface/upload", "what older Hugging Face tools note of an upload"},
	{"*.incomplete", "a download that has not ended"},
	{"__pycache__", "Python's cache of sources that are there"},
	{".ipynb_checkpoints", "notebooks' older versions"},
	{".pytest_cache", "a cache of tests"},
	{".mypy_cache", "a cache of a type checker"},
	{".ruff_cache", "a cache of a linter"},
	{".DS_Store", "the look of a folder on macOS"},
	{"Thumbs.db", "the look of a folder on Windows"},
	{"desktop.ini", "the look of a folder on Windows"},
	{IgnoreFile, "this list's own continuation"},
}

// rule leaves out what its pattern matches, or brings it back.
type rule struct {
	pattern string
	back    bool
}

// rules are patterns in order: of those that match a path, or a folder around it,
// the last one decides. A pattern is as in [carton.ExtractOptions], for the paths
// in the folder that is packed.
type rules []rule

// none is the rule of what no pattern matches.
const none = -1

// of returns the number of the rule that decides about a path, where that about
// the folder around it is known.
func (r rules) of(name string, around int) int {
	for i := len(r) - 1; i > around; i-- {
		if carton.MatchPath(r[i].pattern, name) {
			return i
		}
	}
	return around
}

// leavesPath reports whether a file is left out.
func (r rules) leavesPath(name string) bool {
	number := none
	for i, c := range name {
		if c == '/' {
			number = r.of(name[:i], number)
		}
	}
	return r.leaves(r.of(name, number))
}

// leaves reports whether what the rule decides about is left out.
func (r rules) leaves(i int) bool { return i != none && !r[i].back }

// mayBringBack reports whether a later rule than that of a folder could bring back
// something in it.
func (r rules) mayBringBack(i int) bool {
	return slices.ContainsFunc(r[i+1:], func(x rule) bool { return x.back })
}

// rulesOf are the rules for a folder: the list, then its [IgnoreFile], then the
// options.
func (p *packer) rulesOf(files fs.FS) (rules, error) {
	var r rules
	for _, x := range LeftOutByDefault {
		r = append(r, rule{pattern: x.Pattern})
	}
	own, err := readIgnoreFile(files)
	if err != nil {
		return nil, err
	}
	r = append(r, own...)
	for _, x := range p.opts.Exclude {
		r = append(r, rule{pattern: x})
	}
	for _, x := range p.opts.Include {
		r = append(r, rule{pattern: x, back: true})
	}
	return r, nil
}

// hintInclude says what Include does where it did nothing: other programs take it for
// a choice of what is wanted.
func (p *packer) hintInclude(w *walk) {
	if len(p.opts.Include) == 0 {
		return
	}
	without := w.rules[:len(w.rules)-len(p.opts.Include)]
	for _, f := range w.files {
		if without.leavesPath(strings.TrimPrefix(f.path, w.below)) {
			return
		}
	}
	p.out.Hints = append(p.out.Hints, hint.New(
		"%s brings back what is left out, and nothing was that it matches; to pack what it matches and nothing "+
			"else, add %s '*'",
		hint.PackInclude, hint.PackExclude))
}

// readIgnoreFile reads an [IgnoreFile], where there is one.
func readIgnoreFile(files fs.FS) (rules, error) {
	raw, err := readSmall(files, IgnoreFile, IgnoreFile, MaxIgnoreBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r rules
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, MaxIgnoreBytes+1)
	for lines.Scan() {
		text := strings.TrimRight(lines.Text(), " \t\r")
		if text == "" || text[0] == '#' {
			continue
		}
		pattern, back := strings.CutPrefix(text, "!")
		if err := carton.CheckPatterns(pattern); err != nil {
			return nil, &carton.Error{Path: IgnoreFile, Kind: carton.ErrFormat, Msg: err.Error()}
		}
		r = append(r, rule{pattern: pattern, back: back})
	}
	return r, lines.Err()
}
