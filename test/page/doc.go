// Package page looks at the status page with a real browser, headless Chromium, served by the real REST server. What
// the server tells is made up here, because states such as a thousand clusters or a failing server are wanted at once.
package page
