package rig

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Quiet silences the loggers of the libraries, which would write into what is told to people: parts of the rig come and
// go on purpose. It is for programs and test binaries; what matters is returned as an error or kept in a log file.
func Quiet() {
	// An output alone would not do: klog writes errors to stderr as well.
	klog.SetLogger(logr.Discard())
}
