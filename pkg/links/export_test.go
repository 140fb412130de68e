package links

import "time"

// WithoutBackoff makes a fetcher's retries follow at once.
func WithoutBackoff(f *HTTPFetcher) *HTTPFetcher {
	f.getter.Policy.MinBackoff = time.Nanosecond
	f.getter.Policy.MaxBackoff = time.Nanosecond
	return f
}
