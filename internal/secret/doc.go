// Package secret keeps passwords, tokens and signatures out of what is printed
// and returned.
//
// # Rules that this package keeps
//
// What somebody typed is redacted before anything reads it ([Redact]): of a URL,
// or what may have been meant as one, neither user info nor query is shown,
// however it is spelt. Where it can't be told which part is a password, no part
// is shown. The URL of a request is redacted by the same rule ([URL]), and so are
// URLs within the text of errors ([InText]).
//
// What this process has sent as a secret is known from then on ([Watch]): user
// name and password, tokens, refresh tokens, values of presigned queries. Whoever
// was sent one may repeat it, in an error, a header, a manifest. [Strike] takes
// it out of the text, as it is and in the forms that it is written in: base64,
// percent-encoded, escaped for JSON or by Go.
//
// The known secrets are those of the process, not of one client: what was sent to
// one host may come back from another.
package secret
