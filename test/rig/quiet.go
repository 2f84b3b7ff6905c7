package rig

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Quiet silences the loggers of client libraries, which log an error for each component that a test stops on purpose.
// Programs and test binaries call it. Callers still get the errors that matter as return values or in a log file.
func Quiet() {
	// SetOutput alone is not enough: klog writes errors to stderr too.
	klog.SetLogger(logr.Discard())
}
