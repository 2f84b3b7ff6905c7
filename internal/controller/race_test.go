//go:build race

package controller

// raceEnabled says that the race detector makes everything some ten times slower.
const raceEnabled = true
