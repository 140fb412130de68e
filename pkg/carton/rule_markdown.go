package carton

import (
	"regexp"
	"sync"
)

// The three ways to link in CommonMark (https://spec.commonmark.org/0.31.2/#links):
// [text](link) and ![text](link), [name]: link at the start of a line, <link>.
// This finds what authors write, not every nesting of brackets.
var markdownLink = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`\]\(\s*<([^<>\n]*)>` + // [text](<link>)
			`|\]\(\s*([^\s()<>]+)` + // [text](link) or [text](link "title")
			`|(?m:^ {0,3}\[[^\]\n]+\]:\s*<?([^\s<>]+))` + // [name]: link
			`|<([a-zA-Z][a-zA-Z0-9+.-]{1,31}:[^\s<>]*)>`) // <https://…>
})

// markdownCode is what holds no links: `code` and fenced blocks.
var markdownCode = regexp.MustCompile("(?ms:^ {0,3}```.*?(?:^ {0,3}```|\\z))|`[^`\n]*`")

// markdownLinks returns where the links and images of a Markdown text go, each
// once, in order. Anchors within the text are left out.
func markdownLinks(text string) []string {
	text = markdownCode.ReplaceAllString(text, "")
	var links []string
	seen := map[string]bool{"": true}
	for _, groups := range markdownLink().FindAllStringSubmatch(text, -1) {
		for _, link := range groups[1:] {
			if !seen[link] && link[0] != '#' {
				seen[link] = true
				links = append(links, link)
			}
		}
	}
	return links
}

// htmlTag is an element or comment of HTML (https://spec.commonmark.org/0.31.2/#raw-html).
var htmlTag = regexp.MustCompile(`</?[a-zA-Z][a-zA-Z0-9-]*(?:\s[^<>]*)?/?>|<!--`)

// markdownHTML returns the first of the HTML in a Markdown text, "" for none.
func markdownHTML(text string) string {
	return htmlTag.FindString(markdownCode.ReplaceAllString(text, ""))
}
