package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Result is what a run of a combination showed.
type Result struct {
	Combination
	// Date is the day of the run, in UTC.
	Date string `json:"date"`
	// Steps are the steps that ran, in order. After a step that failed, none ran.
	Steps []Step `json:"steps"`
}

// Step is what one step of a run showed.
type Step struct {
	Name string `json:"name"`
	// Seconds is how long the step took. Failed is why it failed, and empty if it did not.
	Seconds float64 `json:"seconds"`
	Failed  string  `json:"failed,omitempty"`
}

// passed reports whether all steps ran and none failed.
func (r Result) passed() bool {
	return len(r.Steps) == len(steps) && !slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Failed != "" })
}

// step returns the result of the step with a name, if it ran.
func (r Result) step(name string) (Step, bool) {
	i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Name == name })
	if i < 0 {
		return Step{}, false
	}
	return r.Steps[i], true
}

// load reads a file of results. A file that does not exist has none.
func load(file string) ([]Result, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the results: %w", err)
	}
	var results []Result
	if err := json.Unmarshal(data, &results); err != nil {
		return nil, fmt.Errorf("reading the results in %s: %w", file, err)
	}
	return results, nil
}

// save writes a file of results.
func save(file string, results []Result) error {
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// merge puts a result in the place of the last one of its combination. It keeps the order of all, and drops results of
// combinations that are no longer among them.
func merge(all []Combination, results []Result, latest Result) []Result {
	var merged []Result
	for _, c := range all {
		is := func(r Result) bool { return r.Combination == c }
		if is(latest) {
			merged = append(merged, latest)
		} else if i := slices.IndexFunc(results, is); i >= 0 {
			merged = append(merged, results[i])
		}
	}
	return merged
}
