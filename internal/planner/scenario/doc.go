// Package scenario reads and writes planner scenarios: text files with the groups, nodes and demand of a RayCluster,
// and the plan that they must result in. Parse turns a file into snapshots, Format writes a snapshot as text, Outcome
// writes a plan as it appears in "want", and File.Rewrite puts new outcomes into a file.
// internal/planner/testdata/README.md has the grammar.
//
// Only tests import it. It must not decide anything: the tests of the planner compute the plans. Programs read
// snapshots as JSON (internal/snapshotfile).
package scenario
