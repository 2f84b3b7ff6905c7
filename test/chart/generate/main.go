// Command generate writes the files that are generated from the chart: the plain manifests beside it, its README, and
// the dashboards and alerts that it contains. Its argument is the directory deploy. It must not write outside that
// directory.
package main

import (
	"fmt"
	"os"

	"heliostat.dev/heliostat/test/chart"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate DEPLOY")
		os.Exit(2)
	}
	if err := chart.Generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
