package raydemand

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestParseAmountIsExactToFourDecimals(t *testing.T) {
	for text, want := range map[string]Amount{
		"0": 0, "1": One, "0.5": 5000, "0.0001": 1, "0.00005": 1, "0.00004": 0, "-1.5": -15000, "-0.00005": -1,
		"1e3": 1000 * One, "2.50": 25000, "68719476736": 68719476736 * One, "1E-4": 1, "1e+02": 100 * One,
		"1e-999999999": 0, "-2.5E-00100": 0, "1e-100": 0,
	} {
		got, err := ParseAmount(text)
		if err != nil || got != want {
			t.Errorf("ParseAmount(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestParseAmountRefusesWhatRayCouldNotHold(t *testing.T) {
	for _, text := range []string{"", "x", "NaN", "Inf", "1e308", "1e999999999", "x1e-999", "1e-9x9", "1e--999", "1e+-999", "1e-", "1/3", "0x10", "1_0", "922337203685478", "null", `"1"`, "1e", "--1"} {
		if got, err := ParseAmount(text); !errors.Is(err, ErrAmount) {
			t.Errorf("ParseAmount(%q) = %d, %v; want ErrAmount", text, got, err)
		}
	}
}

func TestFromFloatRoundsAsRayDoes(t *testing.T) {
	tenth := 0.1
	sum := 0.0
	for range 10 {
		sum += tenth
	}
	if got, err := FromFloat(sum); err != nil || got != One {
		t.Errorf("ten tenths are %v, %v; want 1", got, err)
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300, math.MaxInt64} {
		if got, err := FromFloat(f); !errors.Is(err, ErrAmount) {
			t.Errorf("FromFloat(%v) = %v, %v; want ErrAmount", f, got, err)
		}
	}
}

func TestAmountSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Amount(rapid.Int64Range(-math.MaxInt64, math.MaxInt64).Draw(t, "amount"))
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Amount
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Fatalf("%d became %s became %d, %v", want, text, got, err)
		}
	})
}

func TestSumsAndProductsSaturate(t *testing.T) {
	clamp := func(x *big.Int) Amount {
		if x.Cmp(big.NewInt(math.MaxInt64)) > 0 {
			return MaxAmount
		}
		if x.Cmp(big.NewInt(-math.MaxInt64)) < 0 {
			return -MaxAmount
		}
		return Amount(x.Int64())
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64Range(-math.MaxInt64, math.MaxInt64).Draw(t, "a")
		b := rapid.Int64Range(-math.MaxInt64, math.MaxInt64).Draw(t, "b")
		x, y := big.NewInt(a), big.NewInt(b)
		if got, want := Amount(a).Plus(Amount(b)), clamp(new(big.Int).Add(x, y)); got != want {
			t.Fatalf("%d + %d = %d, want %d", a, b, got, want)
		}
		if got, want := Amount(a).Times(b), clamp(new(big.Int).Mul(x, y)); got != want {
			t.Fatalf("%d × %d = %d, want %d", a, b, got, want)
		}
	})
}
