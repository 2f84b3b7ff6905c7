package raydemand

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
)

// Amount is a quantity of a Ray resource in units of 1/10000, the precision Ray itself keeps.
// With integers, ten tenths of a GPU add up to one, and plans repeat exactly.
type Amount int64

// One is the Amount that Ray writes as 1.
const One Amount = 10_000

// MaxAmount is the largest amount: 900 trillion, enough for the bytes of 800 TiB. Sums over many workers can exceed it;
// use Plus, which saturates instead of wrapping.
const MaxAmount Amount = math.MaxInt64

// ErrAmount marks a quantity that Ray cannot hold: not a number, infinite, or out of range.
var ErrAmount = errors.New("not an amount")

// Whole returns the Amount of n whole units. It saturates at MaxAmount.
func Whole(n int64) Amount {
	if n > int64(MaxAmount/One) {
		return MaxAmount
	}
	if n < -int64(MaxAmount/One) {
		return -MaxAmount
	}
	return Amount(n) * One
}

// FromFloat rounds f to the nearest 1/10000, as Ray's fixed-point numbers do. The GCS sends doubles.
func FromFloat(f float64) (Amount, error) {
	scaled := math.Round(f * float64(One))
	if math.IsNaN(scaled) || math.IsInf(scaled, 0) || math.Abs(scaled) >= math.MaxInt64 {
		return 0, fmt.Errorf("%w: %v", ErrAmount, f)
	}
	return Amount(scaled), nil
}

// ParseAmount reads a decimal number such as "0.5", "4" or "1e9" exactly and rounds it to the nearest 1/10000.
func ParseAmount(text string) (Amount, error) {
	// big.Rat would compute 10^exponent. A real amount needs an exponent of two digits at most.
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > 2 {
		if digits, small := strings.CutPrefix(text[i+1:], "-"); !small || strings.Trim(digits, "0123456789") != "" {
			return 0, fmt.Errorf("%w: %q", ErrAmount, text)
		}
		_, err := ParseAmount(text[:i])
		// The mantissa has at most 64 digits, so the value rounds to zero.
		return 0, err
	}
	if len(text) > 64 || strings.ContainsAny(text, "/xXpP_") {
		return 0, fmt.Errorf("%w: %q", ErrAmount, text)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, fmt.Errorf("%w: %q", ErrAmount, text)
	}
	r.Mul(r, big.NewRat(int64(One), 1))
	half := big.NewRat(1, 2)
	if r.Sign() < 0 {
		half.Neg(half)
	}
	r.Add(r, half)
	q := new(big.Int).Quo(r.Num(), r.Denom())
	if !q.IsInt64() {
		return 0, fmt.Errorf("%w: %q is out of range", ErrAmount, text)
	}
	return Amount(q.Int64()), nil
}

// Plus adds and saturates at ±MaxAmount, so the capacities of a large fleet never wrap around.
func (a Amount) Plus(b Amount) Amount {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return MaxAmount
	case a < 0 && b < 0 && (sum >= 0 || sum == math.MinInt64):
		return -MaxAmount
	}
	return sum
}

// Times multiplies by a count and saturates at ±MaxAmount.
func (a Amount) Times(n int64) Amount {
	if a == 0 || n == 0 {
		return 0
	}
	product := a * Amount(n)
	if product/Amount(n) != a || product == math.MinInt64 {
		if (a < 0) == (n < 0) {
			return MaxAmount
		}
		return -MaxAmount
	}
	return product
}

// Float returns the amount as Ray writes it.
func (a Amount) Float() float64 { return float64(a) / float64(One) }

// String returns the shortest exact decimal: 1, 0.5, 0.001.
func (a Amount) String() string {
	sign := ""
	u := uint64(a)
	if a < 0 {
		sign, u = "-", -u
	}
	whole, frac := u/uint64(One), u%uint64(One)
	if frac == 0 {
		return fmt.Sprintf("%s%d", sign, whole)
	}
	return strings.TrimRight(fmt.Sprintf("%s%d.%04d", sign, whole, frac), "0")
}

// MarshalJSON writes a JSON number.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON reads a JSON number without converting it to a float.
func (a *Amount) UnmarshalJSON(text []byte) error {
	parsed, err := ParseAmount(string(text))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}
