// Package httprange reads byte ranges over HTTP: blobs of a registry, content
// that LINKS names, and cartons behind an https URL. All of them use this one
// reader.
//
// A [Getter] opens bytes off to off+n of whatever a request asks for, and the
// [Body] it returns survives what may pass: broken connections, stalls, 408,
// 429 and 5xx. It verifies no hash; callers do.
//
// # Rules that this package keeps
//
// A range request is closed ("bytes=a-b") wherever its end is known. The whole
// content from offset 0 is asked for without a Range. What comes back is checked:
//
//   - 206: Content-Range must begin at or before the offset (what comes before it
//     is dropped) and state a size that does not change; it may end early. Any
//     other 206 is not used, and the content is asked for as a whole instead.
//   - 200: the server does not honour ranges; the bytes before the offset are
//     read and dropped, however many.
//   - 416: the content ends before the offset; where its size is known to be
//     larger, the content is asked for as a whole.
//   - under [Getter] NeedRanges, and under a context of [ranges.Only], all that ends
//     in the whole being sent is ranges.ErrNone instead; under the latter a 206 that
//     holds more than was asked for is, too. Who reads many ranges of one content
//     at once must not be sent all of it each time.
//   - a body that ends early is continued from where it broke; one that goes on
//     after its size is an error at the end of the content, and cut elsewhere.
//
// Every request goes to the first URL again: the address that a redirect named
// may have expired. Bytes that were delivered reset the count of attempts
// ([Policy]), unless the time that they took makes them a drip. A response that
// stalls is aborted, and only it; the client's transport sees to that (package
// stall). Retry-After is honoured up to [Policy] MaxRetryAfter, beyond which the
// read fails and says so. Other 4xx are not retried.
//
// What a server sends in an error is read up to 4 KiB and shown as one printable
// line. Error texts name URLs without user info and query (internal/secret).
//
// [NewClient] makes the client for URLs that a stranger wrote: https and public
// addresses only, checked on the address that is connected to, no credentials,
// no Referer, no proxy, at most [MaxRedirects] redirects under the same rules,
// and an allow-list for hosts that are meant to be reached all the same.
//
// [NewReaderAt] is an io.ReaderAt over one URL, with the tail fetched first and
// change detection between requests.
//
// Specification: RFC 9110, sections 10.2.3 (Retry-After), 13.1.5 (If-Range),
// 14 (ranges) and 15.5.17 (416): https://www.rfc-editor.org/rfc/rfc9110
package httprange
