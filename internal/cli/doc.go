// Package cli is what all subcommands share of a command line: flags with checked values, values from a file and from
// the environment, refusals that name what would be right, help that groups flags, completion, output formats and exit
// codes. It must not do what a subcommand does: it does not call a server, Kubernetes or the planner. Packages below it
// each hold one more idea: table lays out text, connect finds servers, output shows answers once or again and again,
// and report writes answers for people.
package cli
