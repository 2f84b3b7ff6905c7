package phrase

import (
	"fmt"
)

func OneOrMany(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func Cards(n int64) string {
	if n == 1 {
		return "1 card"
	}
	return fmt.Sprintf("%d cards", n)
}

func Pods(n int64) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

func HasOrHave(n int64) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

func Plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
