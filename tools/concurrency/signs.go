package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// signs is the result of the search in the source of one package.
type signs struct {
	concurrent, tested bool
	long               bool // its tests call testing.Short
}

// concurrentImports are packages whose importers run goroutines or share memory between them. HTTP and gRPC servers and
// clients start goroutines that call back.
var concurrentImports = []string{
	"golang.org/x/sync/errgroup", "google.golang.org/grpc", "net/http/httptest", "sync/atomic", "testing/synctest",
}

// onceOnly are the names in package sync that are not a sign of concurrency: they compute a value on first use.
var onceOnly = []string{"Once", "OnceFunc", "OnceValue", "OnceValues"}

// read searches all files of a package.
func (p listed) read() (found signs, err error) {
	found.tested = len(p.TestGoFiles)+len(p.XTestGoFiles) > 0
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return found, fmt.Errorf("reading package %s: %w", p.ImportPath, err)
		}
		if ast.IsGenerated(file) {
			continue
		}
		found.concurrent = found.concurrent || isConcurrent(file)
		found.long = found.long || strings.HasSuffix(name, "_test.go") && callsShort(file)
	}
	return found, nil
}

// isConcurrent reports whether a file starts goroutines, imports a package of concurrentImports, or uses a lock.
func isConcurrent(file *ast.File) (concurrent bool) {
	for _, spec := range file.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil && slices.Contains(concurrentImports, path) {
			return true
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GoStmt:
			concurrent = true
		case *ast.SelectorExpr:
			of, isName := n.X.(*ast.Ident)
			if isName && of.Name == "sync" && !slices.Contains(onceOnly, n.Sel.Name) || n.Sel.Name == "AfterFunc" {
				concurrent = true
			}
		}
		return !concurrent
	})
	return concurrent
}

// callsShort reports whether a test file calls testing.Short.
func callsShort(file *ast.File) (calls bool) {
	ast.Inspect(file, func(node ast.Node) bool {
		if call, is := node.(*ast.SelectorExpr); is && call.Sel.Name == "Short" {
			of, isName := call.X.(*ast.Ident)
			calls = calls || isName && of.Name == "testing"
		}
		return !calls
	})
	return calls
}
