// Package cli holds what all subcommands share: flags whose values are checked, settings from a file and from the
// environment, errors that name the valid values, grouped help, output formats and exit codes. It must not do what a
// subcommand does: it does not call a server, Kubernetes or the planner. Each package below it has one task: table lays
// out text, connect finds servers, watch shows an answer once or on each change, and printer writes answers as text.
package cli
