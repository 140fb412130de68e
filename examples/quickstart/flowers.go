package main

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// iris.csv holds R. A. Fisher's measurements of 150 flowers, in centimetres
// ("The use of multiple measurements in taxonomic problems", 1936).
//
//go:embed iris.csv
var irisCSV string

// species are the classes, in the order of the model's outputs.
var species = []string{"setosa", "versicolor", "virginica"}

// features is how many measurements a flower has: length and width of sepal and
// petal.
const features = 4

// flower is one row of iris.csv.
type flower struct {
	x       [features]float64 // centimetres
	species int               // index into species
}

// readFlowers reads the text of iris.csv.
func readFlowers(text string) ([]flower, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	var flowers []flower
	for i, row := range rows[1:] {
		var f flower
		for j := range f.x {
			if f.x[j], err = strconv.ParseFloat(row[j], 64); err != nil {
				return nil, fmt.Errorf("row %d: %w", i+2, err)
			}
		}
		if f.species = slices.Index(species, row[features]); f.species < 0 {
			return nil, fmt.Errorf("row %d: got species %q, want one of %q", i+2, row[features], species)
		}
		flowers = append(flowers, f)
	}
	return flowers, nil
}

// split keeps every fifth flower away from training, to test with.
func split(flowers []flower) (train, test []flower) {
	for i, f := range flowers {
		if i%5 == 4 {
			test = append(test, f)
		} else {
			train = append(train, f)
		}
	}
	return train, test
}
