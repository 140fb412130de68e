// Package stall gives every wait for the network an end.
//
// A [Transport] guards each exchange that passes through it: one request and its
// answer, a redirect's and a token server's as well. All clients of this module
// have one around their transport, so that nothing above it needs a clock.
//
// # The rule
//
// Only time that is spent waiting for the other side counts: not the time that a
// request's source takes, nor the time between two reads of an answer. Of that
// time, within every stall time (Limit, 30 s by default):
//
//   - the answer's header is complete, or, of a PUT or PATCH that has gone out, within
//     Commit: some registries read the whole blob again before they answer;
//   - a request's body, and an answer's, moves by at least [Floor] bytes a second on
//     average, and by one byte at least.
//
// What falls short is aborted with an [Error], which names the host and what was
// waited for; it may be asked again. Silence and a drip are one thing: a server that
// sends a byte now and then is as good as dead. Header lines, 1xx answers, chunk
// extensions and trailers are no progress. An exchange that ends before its first stall
// time is over is never at fault.
//
// The floor is far below every line that somebody would send a model over: eight
// transfers at once over a modem of 56 kbit/s have 875 bytes a second each.
//
// A [Meter] applies the same floor across attempts: who answers every request with
// a byte and breaks off makes no progress either.
package stall
