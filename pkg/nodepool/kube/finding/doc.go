// Package finding collects findings about one Kubernetes object and keeps them short: users write annotations of up to
// 256 KiB, and one object can have thousands of mistakes. It must not know what the findings are about.
package finding
