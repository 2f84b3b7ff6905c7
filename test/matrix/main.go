// Command matrix runs a short form of the loop on several releases of Ray, of the KubeRay operator and of Kubernetes:
// each Ray with the default operator and Kubernetes, each operator with the default Ray and Kubernetes, and each
// Kubernetes with the default of both. It keeps the results in docs/versions.json and writes the table of
// docs/versions.md from them. ONLY limits a run to combinations with all of the given versions; the others keep their
// last result.
//
// It must not write about a combination that did not run. It ends with status 1 if a step failed or a combination did
// not run.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"heliostat.dev/heliostat/test/rig"
)

// The files with the results and with their table, from the directory of the test module.
const (
	resultsFile = "../docs/versions.json"
	pageFile    = "../docs/versions.md"
)

func main() { rig.Main(run) }

func run(ctx context.Context) error {
	all, err := combinations()
	if err != nil {
		return err
	}
	chosen, err := choose(all, strings.Fields(os.Getenv("ONLY")))
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range chosen {
		fmt.Printf("\n%s\n", c)
		err := test(ctx, all, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c, err))
		}
	}
	return errors.Join(errs...)
}

// test runs a combination and keeps its result at once, so that an interrupted run keeps what ran. It returns an error
// if a step failed or nothing ran.
func test(ctx context.Context, all []Combination, c Combination) error {
	date := time.Now().UTC().Format(time.DateOnly)
	ran, err := try(ctx, c)
	if err != nil {
		return fmt.Errorf("it did not run: %w", err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	result := Result{Combination: c, Date: date, Steps: ran}
	if err := keep(all, result); err != nil {
		return err
	}
	if !result.passed() {
		last := ran[len(ran)-1]
		return fmt.Errorf("%s: %s", last.Name, last.Failed)
	}
	return nil
}

// keep puts a result into the file of results and renews the table.
func keep(all []Combination, result Result) error {
	results, err := load(resultsFile)
	if err != nil {
		return err
	}
	results = merge(all, results, result)
	if err := save(resultsFile, results); err != nil {
		return err
	}
	return renew(pageFile, table(results))
}
