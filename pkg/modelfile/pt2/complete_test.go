package pt2_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pt2"
)

// TestArchivesThatAreNotWhole: torch refuses some of these, and loads others with
// weights that nobody set.
func TestArchivesThatAreNotWhole(t *testing.T) {
	whole := modeltest.PT2(t, sharing())
	without := func(names ...string) []byte {
		records := slices.DeleteFunc(modeltest.Records(t, whole), func(r modeltest.Record) bool {
			return slices.Contains(names, strings.TrimPrefix(r.Name, "archive/"))
		})
		return modeltest.PlainZip(t, false, records...)
	}
	compiled := func(files ...string) []byte {
		var records []modeltest.Record
		for _, f := range files {
			records = append(records, modeltest.Record{Name: "data/aotinductor/model/" + f, Data: []byte("{}")})
		}
		return modeltest.PT2(t, modeltest.Archive{Records: records})
	}
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"no models": {modeltest.PT2(t, modeltest.Archive{}), "holds no models"},
		"no weights config": {
			without("data/weights/decoder_weights_config.json"),
			"model decoder has no data/weights/decoder_weights_config.json: torch cannot load it",
		},
		"weights that the definition names": {
			without("data/weights/decoder_weights_config.json"), "lacks 3 of the 4 weights and constants that its definition names, such as fc.weight",
		},
		"blob that no config names": {
			modeltest.PT2(t, modeltest.Archive{Storages: [][]byte{{1}}, Models: []modeltest.Model{{Name: "m"}}}),
			"no config names 1 of its files of weights and constants, such as data/weights/weight_0",
		},
		"package without its library": {compiled("a.wrapper_metadata.json", "k.kernel.cpp"), "data/aotinductor/model holds no compiled library (.so): torch cannot load it"},
		"package of code only":        {compiled("a.wrapper.cpp", "k.kernel.cpp"), "torch compiles its .cpp"},
	} {
		t.Run(name, func(t *testing.T) {
			if a := mustOpen(t, c.archive); !has(a.Findings, c.want) {
				t.Errorf("got %q, want %q", a.Findings, c.want)
			}
		})
	}
	if a := mustOpen(t, compiled("a.wrapper.so")); len(a.Findings) > 0 {
		t.Errorf("got %q of a whole package", a.Findings)
	}
}

// TestAnExportThatHoldsNoModel: torch wrote it, where the export failed.
func TestAnExportThatHoldsNoModel(t *testing.T) {
	b, err := os.ReadFile(testenv.Foreign(t, "pt2/torch-2.14/sparse.pt2"))
	if err != nil {
		t.Fatal(err)
	}
	if a := mustOpen(t, b); !has(a.Findings, "holds no models") {
		t.Errorf("got %q", a.Findings)
	}
}

func TestContainerVersion(t *testing.T) {
	records := modeltest.Records(t, modeltest.PT2(t, sharing()))
	for i := range records {
		if records[i].Name == "archive/.data/version" {
			records[i].Data = []byte("banana\n")
		}
	}
	_, err := open(modeltest.PlainZip(t, false, records...))
	if !errors.Is(err, pt2.ErrFormat) || !strings.Contains(err.Error(), ".data/version is banana, which is not a number") {
		t.Errorf("got %v", err)
	}
}
