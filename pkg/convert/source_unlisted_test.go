package convert

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// attach adds a layer to an artifact of ours, as modctl attach does: the
// annotations stay, the layers are sorted anew.
func attach(t *testing.T, opts Options, add func(s *shelf) ocispec.Descriptor) (*shelf, ocispec.Descriptor) {
	t.Helper()
	s, desc, a := pushed(t, kinds(), opts)
	m := manifestOf(t, a)
	m.Layers = slices.Insert(m.Layers, 1, add(s))
	if m.Config.MediaType != ocispec.MediaTypeImageConfig {
		m.Config = s.keep(m.Config.MediaType, []byte(`{"modelfs":{"type":"layers","diffIds":[]}}`))
	}
	return s, s.keep(desc.MediaType, marshal(m))
}

func attachRaw(s *shelf) ocispec.Descriptor {
	d := s.keep("application/vnd.cnai.model.doc.v1.raw", []byte("# Notes"))
	d.Annotations = map[string]string{filepathCNAI: "NOTES.md"}
	return d
}

func attachTar(s *shelf) ocispec.Descriptor {
	d := s.keep("application/vnd.cnai.model.doc.v1.tar", foreignTar([]string{"NOTES.md"}, map[string]string{"NOTES.md": "# Notes"}))
	d.Annotations = map[string]string{filepathCNAI: "NOTES.md"}
	return d
}

// TestWhatOthersAttachIsNoMember: a layer that MANIFEST does not list hides
// nothing of the carton, is named, and gets into no image.
func TestWhatOthersAttachIsNoMember(t *testing.T) {
	want := kinds().Manifest().ModelHash()
	for form, opts := range map[string]Options{"raw": {}, "tar": {Layers: FormTar}, "cncf": {MediaTypes: FamilyCNCF}} {
		for kind, add := range map[string]func(*shelf) ocispec.Descriptor{"raw": attachRaw, "tar": attachTar} {
			t.Run(form+" with "+kind, func(t *testing.T) {
				s, desc := attach(t, opts, add)
				src, err := Open(t.Context(), s, desc, OpenOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer src.Close()
				report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
				if err != nil || !report.OK() || report.ModelHash != want {
					t.Fatalf("got %+v, %v", report, err)
				}
				said := slices.DeleteFunc(report.Findings, func(f carton.Finding) bool { return !strings.Contains(f.Err.Error(), "no member") })
				if len(said) != 1 || said[0].Severity != carton.SeverityWarning {
					t.Errorf("got the findings %v, want a warning of it", said)
				}
				if names := src.Unlisted(); len(names) != 1 || kind == "raw" && names[0] != "NOTES.md" {
					t.Errorf("got %q", names)
				}
				forms, err := Image(t.Context(), src, Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range forms.Image.Layers {
					if l.Digest == add(s).Digest {
						t.Error("it is in the image form")
					}
				}
				copied, err := Copy(t.Context(), src, Options{})
				switch {
				case kind == "tar": // nobody has looked into it
					if !errors.Is(err, layout.ErrFormat) || len(hint.Of(err)) != 1 {
						t.Errorf("copy: got %v", err)
					}
				case err != nil:
					t.Errorf("copy: %v", err)
				default:
					if diff := cmp.Diff([]string{"NOTES.md"}, copied.Paths[1]); diff != "" {
						t.Error(diff)
					}
				}
			})
		}
	}
}

// A tar that mixes members with others is refused, and so is a second layer of a
// member, whatever its name.
func TestWhatMixesMembersWithOthersIsRefused(t *testing.T) {
	for name, add := range map[string]func(*shelf) ocispec.Descriptor{
		"a tar with a member and more": func(s *shelf) ocispec.Descriptor {
			return s.keep("application/vnd.cnai.model.doc.v1.tar", foreignTar([]string{"NOTES.md", "model/README.md"}, map[string]string{"NOTES.md": "", "model/README.md": "# A model\n"}))
		},
		"a member again": func(s *shelf) ocispec.Descriptor {
			d := s.keep("application/vnd.cnai.model.doc.v1.raw", []byte("# A model\n"))
			d.Annotations = map[string]string{filepathCNAI: "model/README.md"}
			return d
		},
		"another MANIFEST": func(s *shelf) ocispec.Descriptor {
			return s.keep("application/vnd.cnai.model.doc.v1.tar", foreignTar([]string{"MANIFEST"}, map[string]string{"MANIFEST": "x"}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, desc := attach(t, Options{}, add)
			src, err := Open(t.Context(), s, desc, OpenOptions{})
			if err == nil {
				defer src.Close()
				_, err = src.Members(t.Context())
			}
			if !errors.Is(err, carton.ErrFormat) && !errors.Is(err, carton.ErrInsecurePath) && !errors.Is(err, layout.ErrFormat) {
				t.Errorf("got %v, want it refused", err)
			}
		})
	}
}
