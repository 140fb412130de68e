package main

import (
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/convert"
)

// imageFlags are the flags of push about who else is to read the artifact.
func imageFlags(o *client.PushOptions) []cli.Flag {
	m := &o.Mapping
	return inCategory(forReaders, slices.Concat([]cli.Flag{
		yes(&m.Image, "image", "push the form that containerd mounts as well, as REF-image"),
		yes(&o.LeaveImage, "no-image", "leave a REF-image that is there as it is"),
	}, imageFormFlags(&o.ImageTag, &m.ImageSubject), []cli.Flag{
		yes(&m.Readme, "readme",
			"add README and LICENSE where the page of a registry, such as Harbor's, looks for them"),
		choice(&m.Compat, "compat", "push `FORM` for a registry that takes no artifacts: image-config, image",
			convert.CompatImageConfig, convert.CompatImage),
	})...)
}

// mappingFlags say how a carton becomes an artifact. What nobody asks for stays
// open: an artifact is copied in whatever form it is.
func mappingFlags(o *convert.Options) []cli.Flag {
	return []cli.Flag{
		choice(&o.Layers, "layers", "`FORM` of layers: raw or tar; with --image tar (default raw)", convert.FormRaw,
			convert.FormTar),
		parsed("bundle-below", "bundle files that are no weights and smaller than `SIZE`",
			func(text string) (err error) {
				if o.BundleBelow, err = parseSize(text); o.BundleBelow == 0 {
					o.BundleBelow = -1 // bundle nothing that needs no bundle; 0 would leave the choice
				}
				return err
			}),
		choice(&o.MediaTypes, "media-types",
			"`FAMILY` of media types: cnai, cncf or cnai-draft (default $"+mediaTypesVariable+", else cnai)",
			families...),
		choice(&o.Compress, "compress", "`METHOD` for bundles: none, zstd or gzip (default none)",
			convert.CompressNone, convert.CompressZstd, convert.CompressGzip),
		annotationFlag(&o.Annotations, "annotate the image manifest with `KEY=VALUE`"),
	}
}

var families = []convert.Family{convert.FamilyCNAI, convert.FamilyCNCF, convert.FamilyDraft}

// mediaTypesVariable names the environment variable with the family of media types
// that is written where --media-types asks for none.
const mediaTypesVariable = "CARTON_OCI_MEDIA_TYPES"

// checkForm reads the environment, and refuses flags that contradict each other.
func checkForm(c *cli.Context, o *client.PushOptions) (err error) {
	m := &o.Mapping
	if m.DefaultMediaTypes = convert.Family(os.Getenv(mediaTypesVariable)); m.MediaTypes == "" &&
		m.DefaultMediaTypes != "" {
		if err := oneOf(m.DefaultMediaTypes, families); err != nil {
			return usagef(c.Command.Name, "%s: %v", mediaTypesVariable, err)
		}
	}
	if m.Created, err = created(); err != nil {
		return err
	}
	if m.Compat == convert.CompatImage && (m.Image || m.Readme) {
		return usagef(c.Command.Name,
			"--compat image pushes the image form alone: it goes without --image and --readme")
	}
	if err := notBoth(c, "no-image", "image"); err != nil {
		return err
	}
	return onlyWith(c, "image", "image-tag", "image-subject")
}

// created returns the time that SOURCE_DATE_EPOCH gives, the zero time where it
// is not set.
// https://reproducible-builds.org/specs/source-date-epoch/
func created() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 || seconds > 253402300799 { // the end of the year 9999
		return time.Time{}, usagef("", "SOURCE_DATE_EPOCH: got %s, want seconds since 1970", quoted(text))
	}
	return time.Unix(seconds, 0).UTC(), nil
}
