// Package page tests the status page with a real browser, headless Chromium, and the real REST server. The server's
// data is made up, because the tests need states such as a thousand clusters or a failing server. The package must not
// start a cluster.
package page
