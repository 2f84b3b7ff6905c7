package docs

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGPUsListsEveryFindingOfCardsAndNoOther(t *testing.T) {
	var want, got []string
	for _, file := range goFiles(t, "pkg/nodepool/cards.go", false) {
		ast.Inspect(file, func(node ast.Node) bool {
			value, ok := node.(*ast.ValueSpec)
			if !ok || len(value.Values) != 1 {
				return true
			}
			kind, _ := value.Type.(*ast.Ident)
			if literal, ok := value.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING && kind != nil && kind.Name == "CardCode" {
				code, _ := strconv.Unquote(literal.Value)
				want = append(want, code)
			}
			return true
		})
	}
	_, table, _ := strings.Cut(read(t, "docs/reference/gpus.md"), "| finding |")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		if row, ok := strings.CutPrefix(line, "| `"); ok {
			code, _, _ := strings.Cut(row, "`")
			got = append(got, code)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); len(want) == 0 || diff != "" {
		t.Errorf("codes (-source +docs):\n%s", diff)
	}
}
