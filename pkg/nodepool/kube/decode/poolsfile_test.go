package decode

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/price"
)

func TestPricesAreRead(t *testing.T) {
	got, err := ReadPrices(strings.NewReader(`
currency: EUR
lists: false
pools: {train: 27.2}
instanceTypes:
  p4d.24xlarge: 21
spot: {p4d.24xlarge: 8.5}
`))
	want := price.Book{Currency: "EUR", WithoutLists: true, Pools: map[string]float64{"train": 27.2},
		InstanceTypes: map[string]float64{"p4d.24xlarge": 21}, Spot: map[string]float64{"p4d.24xlarge": 8.5}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := ReadPrices(strings.NewReader("{}")); err != nil || got.WithoutLists {
		t.Errorf("an empty object gives %+v, %v", got, err)
	}
}

func TestAnErrorInPricesNamesFieldAndValue(t *testing.T) {
	for text, want := range map[string]string{
		"instanceTypes: {p4d.24xlarge: -1}":     "instanceTypes.p4d.24xlarge: price -1: want 0 to 1000000000",
		"pools: {train: 2e9}":                   "pools.train: price 2e+09: want 0 to 1000000000",
		"spot: {x: -2}":                         "spot.x: price -2: want 0 to 1000000000",
		"currency: dollars":                     `currency "dollars": want a code of ISO 4217, such as USD`,
		"instanceType: {p4d.24xlarge: 1}":       `unknown field "instanceType": want instanceTypes`,
		`instanceTypes: {p4d.24xlarge: "21.9"}`: `instanceTypes: {"p4d.24xlarge":"21.9"}: want an object, each value of which is a number without quotes`,
		"lists: no please":                      `lists: "no please": want true or false`,
		"[1]":                                   "[1]: want an object with currency, instanceTypes, lists, pools, spot",
	} {
		if _, err := ReadPrices(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := ReadPrices(strings.NewReader(strings.Repeat("#", maxPricesFile+2))); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("a file of more than 1 MiB gives %v", err)
	}
}
