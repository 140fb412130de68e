package main

import "math"

const (
	hidden  = 8
	classes = 3
)

// network is a perceptron with one hidden layer:
//
//	z = (x - mean) / std
//	h = softsign(hiddenWeight z + hiddenBias), softsign(a) = a / (1 + |a|)
//	scores = outputWeight h + outputBias
//
// Only + - * / and square roots are used, every one rounded by itself
// (float64(a*b) forbids the compiler to fuse it with an addition), so that
// training gives the same bits on every processor.
type network struct {
	mean, std    [features]float64
	hiddenWeight [hidden][features]float64
	hiddenBias   [hidden]float64
	outputWeight [classes][hidden]float64
	outputBias   [classes]float64
}

// activations are the values inside the network for one flower.
type activations struct {
	z      [features]float64
	h      [hidden]float64
	slope  [hidden]float64 // of softsign, where h is
	scores [classes]float64
}

func (n *network) run(x [features]float64) activations {
	var a activations
	for j := range x {
		a.z[j] = (x[j] - n.mean[j]) / n.std[j]
	}
	for i := range a.h {
		sum := n.hiddenBias[i]
		for j := range a.z {
			sum += float64(n.hiddenWeight[i][j] * a.z[j])
		}
		d := 1 + math.Abs(sum)
		a.h[i] = sum / d
		a.slope[i] = 1 / float64(d*d)
	}
	for k := range a.scores {
		sum := n.outputBias[k]
		for i := range a.h {
			sum += float64(n.outputWeight[k][i] * a.h[i])
		}
		a.scores[k] = sum
	}
	return a
}

// predict returns the species with the highest score.
func (n *network) predict(x [features]float64) int {
	scores := n.run(x).scores
	best := 0
	for k := range scores {
		if scores[k] > scores[best] {
			best = k
		}
	}
	return best
}

// correct counts the flowers whose species the network predicts.
func (n *network) correct(flowers []flower) int {
	right := 0
	for _, f := range flowers {
		if n.predict(f.x) == f.species {
			right++
		}
	}
	return right
}

// float32s rounds every parameter to what a file of float32 holds.
func (n *network) float32s() {
	for _, t := range n.tensors() {
		for _, v := range t.values {
			*v = float64(float32(*v))
		}
	}
}
