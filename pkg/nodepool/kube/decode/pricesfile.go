package decode

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool/price"
)

// maxPricesFile bounds a prices file in bytes: some ten thousand instance types.
const maxPricesFile = 1 << 20

// currencyCode is the form of a code of ISO 4217.
var currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)

// ReadPrices reads the prices file, YAML or JSON: prices of one node per hour by pool and by instance type, those of
// spot nodes, their currency, and whether the built-in lists apply. An error names field and value.
func ReadPrices(in io.Reader) (price.Book, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxPricesFile+1))
	if err == nil && len(text) > maxPricesFile {
		err = errors.New("larger than 1 MiB: want prices by instance type")
	}
	if err != nil {
		return price.Book{}, err
	}
	object, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return price.Book{}, err
	}
	book, lists := price.Book{}, true
	known := members{"currency": &book.Currency, "pools": &book.Pools, "instanceTypes": &book.InstanceTypes,
		"spot": &book.Spot, "lists": &lists}
	if err := readMembers(object, known); err != nil {
		return price.Book{}, err
	}
	if book.Currency != "" && !currencyCode.MatchString(book.Currency) {
		return price.Book{}, fmt.Errorf("currency %q: want a code of ISO 4217, such as %s", book.Currency,
			price.ListCurrency)
	}
	for _, table := range []struct {
		field  string
		prices map[string]float64
	}{{"pools", book.Pools}, {"instanceTypes", book.InstanceTypes}, {"spot", book.Spot}} {
		for _, name := range slices.Sorted(maps.Keys(table.prices)) {
			if err := checkPrice(table.prices[name]); err != nil {
				return price.Book{}, fmt.Errorf("%s.%s: %w", table.field, name, err)
			}
		}
	}
	book.WithoutLists = !lists
	return book, nil
}
