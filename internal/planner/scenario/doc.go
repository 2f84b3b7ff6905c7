// Package scenario reads and writes planner scenarios: text files that say what a RayCluster has and asks for, and
// what the plan must be. Parse turns a file into snapshots, Format writes a snapshot as text, Outcome writes a plan as
// it stands in "want", and File.Rewrite puts new outcomes into a file. internal/planner/testdata/README.md has the
// grammar.
//
// Only tests import it. It must not decide anything: the tests of the planner compute the plans. Programs read
// snapshots as JSON (internal/snapshotfile).
package scenario
