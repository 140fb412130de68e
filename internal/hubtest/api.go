package hubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// refuse answers with an error as the hub words them.
func refuse(w http.ResponseWriter, status int, code, message string) {
	if code != "" {
		w.Header().Set("X-Error-Code", code)
	}
	w.Header().Set("X-Error-Message", message)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// split cuts an escaped path into segments, unescaped.
func split(escaped string) []string {
	var parts []string
	for s := range strings.SplitSeq(strings.Trim(escaped, "/"), "/") {
		if text, err := url.PathUnescape(s); err == nil {
			s = text
		}
		parts = append(parts, s)
	}
	return parts
}

// serve answers for the hub itself.
func (h *Hub) serve(w http.ResponseWriter, r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), h.conf.Path+"/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	if at, ok := strings.CutPrefix(rest, "api/models/"); ok {
		h.Calls.Add(1)
		h.about(w, r, split(at), []string{"revision", "tree", "paths-info", "refs"}, h.api)
		return
	}
	if at, ok := strings.CutPrefix(rest, "api/resolve-cache/models/"); ok {
		h.about(w, r, split(at), nil, h.small)
		return
	}
	h.about(w, r, split(rest), []string{"resolve", "raw"}, h.resolve)
}

// about finds the repository that a path begins with, judges who may read it, and
// lets serve answer for the rest: a verb of verbs and what follows it.
func (h *Hub) about(
	w http.ResponseWriter, r *http.Request, parts, verbs []string, serve func(http.ResponseWriter, *http.Request, *repo, []string),
) {
	n := min(2, len(parts))
	for _, at := range []int{2, 1} {
		if len(parts) > at && (slices.Contains(verbs, parts[at]) || verbs == nil && h.named(parts[:at]) != nil) {
			n = at
			break
		}
	}
	repo := h.named(parts[:n])
	authorized := h.conf.Token != "" && r.Header.Get("Authorization") == "Bearer "+h.conf.Token
	hidden := repo == nil || repo.private && !authorized
	switch {
	case hidden && r.Header.Get("Authorization") == "":
		refuse(w, http.StatusUnauthorized, "", "Invalid username or password.")
	case hidden:
		refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
	case repo.disabled:
		refuse(w, http.StatusForbidden, "", "Access to this resource is disabled.")
	case repo.gated && !authorized && (len(verbs) == 0 || verbs[0] == "resolve"):
		status := http.StatusForbidden
		if r.Header.Get("Authorization") == "" {
			status = http.StatusUnauthorized
		}
		refuse(w, status, "GatedRepo", "Access to model "+repo.name+" is restricted. You must have access to it and be authenticated to access it.")
	case repo.name != strings.Join(parts[:n], "/"): // other casing, or an older name
		http.Redirect(w, r, strings.Replace(r.URL.String(), strings.Join(parts[:n], "/"), repo.name, 1), http.StatusTemporaryRedirect)
	default:
		serve(w, r, repo, parts[n:])
	}
}

// named finds a repository, nil for none.
func (h *Hub) named(parts []string) *repo {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.repos[strings.ToLower(strings.Join(parts, "/"))]
}

// commit finds what a revision stands for.
func (h *Hub) commit(r *repo, revision string) *commit {
	h.mu.Lock()
	defer h.mu.Unlock()
	if revision == "HEAD" {
		revision = "main"
	}
	if sha, ok := r.refs[revision]; ok {
		revision = sha
	}
	return r.commits[revision]
}

func (h *Hub) api(w http.ResponseWriter, r *http.Request, repo *repo, parts []string) {
	verb, revision := "", "main"
	if len(parts) > 0 {
		verb = parts[0]
	}
	if len(parts) > 1 {
		revision = parts[1]
	}
	c := h.commit(repo, revision)
	switch {
	case verb == "refs":
		h.refs(w, repo)
	case c == nil:
		refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+revision)
	case verb == "tree":
		h.tree(w, r, c, strings.Join(parts[2:], "/"))
	case verb == "paths-info":
		h.pathsInfo(w, r, c)
	case verb == "" || verb == "revision":
		h.info(w, repo, c)
	default:
		http.NotFound(w, r)
	}
}

// info answers what a model is.
func (h *Hub) info(w http.ResponseWriter, repo *repo, c *commit) {
	siblings := []map[string]string{}
	for _, f := range c.files {
		siblings = append(siblings, map[string]string{"rfilename": f.Path})
	}
	answer(w, map[string]any{
		"_id": c.sha[:24], "id": repo.name, "modelId": repo.name, "sha": c.sha, "lastModified": "2026-01-02T03:04:05.000Z",
		"private": repo.private, "gated": repo.gated, "disabled": repo.disabled, "downloads": 1, "likes": 1, "tags": []string{"test"}, "siblings": siblings,
	})
}

func (h *Hub) refs(w http.ResponseWriter, repo *repo) {
	h.mu.Lock()
	defer h.mu.Unlock()
	branches := []map[string]string{}
	for name, sha := range repo.refs {
		branches = append(branches, map[string]string{"name": name, "ref": "refs/heads/" + name, "targetCommit": sha})
	}
	answer(w, map[string]any{"branches": branches, "tags": []string{}, "converts": []string{}})
}

// tree lists the files below a folder, in pages.
func (h *Hub) tree(w http.ResponseWriter, r *http.Request, c *commit, dir string) {
	q := r.URL.Query()
	recursive, _ := strconv.ParseBool(q.Get("recursive"))
	entries := c.entries(dir, recursive, h.conf.Xet)
	if entries == nil && dir != "" {
		refuse(w, http.StatusNotFound, "EntryNotFound", dir+" does not exist")
		return
	}
	from, _ := strconv.Atoi(q.Get("cursor"))
	size := h.conf.PageSize
	if size == 0 {
		size = 1000
	}
	from = min(max(from, 0), len(entries))
	end := min(from+size, len(entries))
	if end < len(entries) {
		q.Set("cursor", strconv.Itoa(end))
		host := "http://" + r.Host
		if h.conf.NextHost != "" {
			host = h.conf.NextHost
		}
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, host, r.URL.EscapedPath(), q.Encode()))
	}
	answer(w, append([]map[string]any{}, entries[from:end]...))
}

// entries are the files and folders below a folder, nil for none.
func (c *commit) entries(dir string, recursive, xet bool) []map[string]any {
	var out []map[string]any
	seen := map[string]bool{}
	for _, f := range c.files {
		rel, ok := strings.CutPrefix(f.Path, dir+"/")
		if dir == "" {
			rel, ok = f.Path, true
		}
		if !ok {
			continue
		}
		for i, ch := range rel {
			folder := path.Join(dir, rel[:i])
			if ch == '/' && !seen[folder] && (recursive || !strings.Contains(rel[:i], "/")) {
				seen[folder] = true
				out = append(out, map[string]any{"type": "directory", "oid": c.sha, "size": 0, "path": folder})
			}
		}
		if recursive || !strings.Contains(rel, "/") {
			out = append(out, f.entry(xet))
		}
	}
	return out
}

// entry is a file as the API lists it.
func (f *listed) entry(xet bool) map[string]any {
	size, hash, git := f.size(), f.hash, f.git
	if f.ListedSize > 0 {
		size = f.ListedSize
	}
	if f.ListedHash != "" {
		hash = f.ListedHash
	}
	if f.ListedGit != "" {
		git = f.ListedGit
	}
	e := map[string]any{"type": "file", "oid": git, "size": size, "path": f.Path}
	if f.Large {
		e["lfs"] = map[string]any{"oid": hash, "size": size, "pointerSize": len(f.pointer(f.hash))}
		if xet {
			e["xetHash"] = hash
		}
	}
	return e
}

func (h *Hub) pathsInfo(w http.ResponseWriter, r *http.Request, c *commit) {
	var asked struct {
		Paths []string `json:"paths"`
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		_ = json.NewDecoder(r.Body).Decode(&asked) // of what can't be read nothing is listed
	} else if r.ParseForm() == nil {
		asked.Paths = r.Form["paths"]
	}
	out := []map[string]any{}
	for _, f := range c.files {
		if slices.Contains(asked.Paths, f.Path) {
			out = append(out, f.entry(h.conf.Xet))
		}
	}
	answer(w, out)
}

// limited reports whether too many files were asked for, and says so.
func (h *Hub) limited(w http.ResponseWriter) bool {
	h.Resolved.Add(1)
	if h.conf.Resolves == 0 {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.window = slices.DeleteFunc(h.window, func(at time.Time) bool { return now.Sub(at) >= h.conf.Window })
	if len(h.window) < h.conf.Resolves {
		h.window = append(h.window, now)
		return false
	}
	wait := h.conf.Window - now.Sub(h.window[0])
	w.Header().Set("RateLimit", fmt.Sprintf(`"resolvers";r=0;t=%d`, int(wait/time.Second)))
	w.Header().Set("RateLimit-Policy", fmt.Sprintf(`"fixed window";"resolvers";q=%d;w=%d`, h.conf.Resolves, int(h.conf.Window/time.Second)))
	refuse(w, http.StatusTooManyRequests, "", "We had to rate limit your IP.")
	return true
}
