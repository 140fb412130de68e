package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// What training gives on every machine. A change of the training changes them,
// and the numbers in carton/misc/README.md with them.
const (
	wantWeights   = "9021e99e2574be8a861b8f982280563d1f61b807547e0b2f2cde764a978e17ad"
	wantModelHash = "dea855e60592261bfe8c04cc27308b62b5ed4774a69043a222ed7ae8da3ae150"
)

func trained(t *testing.T) (n *network, train, test []flower) {
	t.Helper()
	flowers, err := readFlowers(irisCSV)
	if err != nil {
		t.Fatal(err)
	}
	train, test = split(flowers)
	return fit(train), train, test
}

// The sums and counts are those of Fisher's table.
func TestTheFlowersAreFishers(t *testing.T) {
	flowers, err := readFlowers(irisCSV)
	if err != nil {
		t.Fatal(err)
	}
	var tenths [features]int // exact, unlike a sum of floats
	var count [classes]int
	for _, f := range flowers {
		count[f.species]++
		for j, v := range f.x {
			tenths[j] += int(math.Round(v * 10))
		}
	}
	if want := [features]int{8765, 4586, 5637, 1799}; tenths != want {
		t.Errorf("sums of millimetres: got %v, want %v", tenths, want)
	}
	if want := [classes]int{50, 50, 50}; count != want {
		t.Errorf("flowers: got %v, want %v", count, want)
	}
}

func TestBadRowsAreRefused(t *testing.T) {
	const header = "sepal_length,sepal_width,petal_length,petal_width,species\n"
	for _, row := range []string{"1,2,3,4,tulip\n", "1,2,x,4,setosa\n", "1,2,3\n"} {
		if _, err := readFlowers(header + row); err == nil {
			t.Errorf("%q: got no error", row)
		}
	}
}

func TestAccuracyIsWhatTheModelCardSays(t *testing.T) {
	n, train, test := trained(t)
	if got := n.correct(train); got != 117 {
		t.Errorf("of %d flowers trained with: got %d right, want 117", len(train), got)
	}
	if got := n.correct(test); got != 28 {
		t.Errorf("of %d flowers held out: got %d right, want 28", len(test), got)
	}
	card, err := static.ReadFile("carton/misc/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"117 of the 120", "28 of the 30"} {
		if !strings.Contains(string(card), want) {
			t.Errorf("the model card does not say %q", want)
		}
	}
}

// A step moves a weight by the learning rate times the slope of the loss; the
// slope here is measured, not derived.
func TestStepFollowsTheGradient(t *testing.T) {
	n, train, _ := trained(t)
	f := train[60]
	loss := func() float64 {
		var sum float64
		for k, s := range n.run(f.x).scores {
			if k == f.species {
				s--
			}
			sum += s * s / 2
		}
		return sum
	}
	weights := map[string]*float64{
		"hidden.weight": &n.hiddenWeight[3][2],
		"hidden.bias":   &n.hiddenBias[3],
		"output.weight": &n.outputWeight[1][3],
		"output.bias":   &n.outputBias[1],
	}
	want := map[string]float64{}
	for name, w := range weights {
		const h = 1e-6
		before := *w
		*w = before + h
		above := loss()
		*w = before - h
		below := loss()
		*w = before
		want[name] = before - learningRate*(above-below)/(2*h)
	}
	n.step(f)
	for name, w := range weights {
		if math.Abs(*w-want[name]) > 1e-8 {
			t.Errorf("%s after a step: got %.12f, want %.12f", name, *w, want[name])
		}
	}
}

func TestWeightsAreTheSameOnEveryMachine(t *testing.T) {
	n, _, _ := trained(t)
	file, err := n.safetensors()
	if err != nil {
		t.Fatal(err)
	}
	if got := hexSum(file); got != wantWeights {
		t.Errorf("sha256 of the weights: got %s, want %s", got, wantWeights)
	}
	h, err := safetensors.ReadHeader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	elements := (h.Size() - h.DataStart) / 4
	if want := int64(2*features + hidden*(features+1) + classes*(hidden+1)); elements != want || len(h.Tensors) != 6 {
		t.Errorf("got %d tensors of %d elements, want 6 of %d", len(h.Tensors), elements, want)
	}
	i := slices.IndexFunc(h.Tensors, func(t safetensors.Tensor) bool { return t.Name == "output.bias" })
	if i < 0 || !slices.Equal(h.Tensors[i].Shape, []int64{classes}) {
		t.Fatalf("output.bias of shape [%d] is not in %v", classes, h.Tensors)
	}
	got := math.Float32frombits(binary.LittleEndian.Uint32(file[h.DataStart+h.Tensors[i].Begin+4:]))
	if want := float32(n.outputBias[1]); got != want {
		t.Errorf("output.bias[1]: got %v, want %v", got, want)
	}
}

func TestTheCartonIsWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "iris")
	if err := run(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	src, err := carton.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if got := src.Manifest().ModelHash(); got != wantModelHash {
		t.Errorf("model hash: got %s, want %s", got, wantModelHash)
	}
	report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Errorf("%v", f.Err)
	}
	if err := run(t.Context(), dir); err == nil {
		t.Error("a second run into the same folder: got no error, want one")
	}
}

func TestSelfTestHoldsWhatTheNetworkSays(t *testing.T) {
	n, _, test := trained(t)
	measurements, scores := n.selfTest(test)
	if got, want := len(measurements), len(test)*features*4; got != want {
		t.Errorf("measurements: got %d bytes, want %d", got, want)
	}
	if got, want := len(scores), len(test)*classes*4; got != want {
		t.Errorf("scores: got %d bytes, want %d", got, want)
	}
	at := n.run(test[7].x).scores[2]
	got := math.Float32frombits(binary.LittleEndian.Uint32(scores[(7*classes+2)*4:]))
	if math.Abs(float64(got)-at) > 1e-5 {
		t.Errorf("score of flower 7 for %s: got %v, want about %v", species[2], got, at)
	}
	if !bytes.Contains([]byte(index(len(test))), []byte("shape = [30, 4]")) {
		t.Errorf("index.toml has no tensor of shape [30, 4]")
	}
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
