package pmf

import "testing"

// The forms that PEP 440 names, under "Version scheme" and "Normalization", and what
// is near them.
func TestPEP440(t *testing.T) {
	for _, v := range []string{
		"1", "1.0", "2012.4", "1!1.0", "0!0", "v1.0", "V1.0", "00000001.002", "1.0.0.0.0.0.0.0",
		"1.0a1", "1.0.a.1", "1.0-alpha-1", "1.0_beta_2", "1.0c1", "1.0RC1", "1.0pre", "1.0-preview.3", "1.1.a1", "1.2a", "1.2a-",
		"1.0.post1", "1.0-1", "1.0post", "1.0-r4", "1.0-REV.4", "1.0_post_2", "1.0a1.post2", "1.0.post2.dev3", "1.0-1dev",
		"1.0.dev1", "1.0dev", "1.0-dev-4", "1.0a2.dev456", "1.0rc1.post345.dev456",
		"1.0+abc.5", "1.0+ubuntu-1", "1.0+Ubuntu_1", "1.0+007", "1.0a1.post2.dev3+local.7", "v1!2.3-rc-4-5.dev6+x",
	} {
		if !isPEP440(v) {
			t.Errorf("%q is not taken", v)
		}
	}
	for _, v := range []string{
		"", "v", "vv1", "1.", ".1", "1..2", "!1", "1!", "1!2!3", "-1", "1.0-", "1.0.", "1.0--1", "1.0a1b2", "1.0.post1.post2", "1.0dev1a1",
		"1.0.dev1.post2", "1.0+", "1.0+a+b", "1.0+a..b", "1.0+-a", "1.0+a-", "1.0+a b", "1.0 ", " 1.0", "1.0\n", "1.0 a1", "1,0", "1.0.x", "1.0-final", "1.0-post-1-2",
		"1.0po\u017ft1", "1.0+\u017f", "1.0+\u212a", "\u0661.0", "1.0+é", "1.*", ">=1.0",
	} {
		if isPEP440(v) {
			t.Errorf("%q is taken", v)
		}
	}
}
