package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const configPackage = "../../internal/config"

// docs are the doc comments of the configuration's fields, by struct and name.
// constants are the values of its enumerations, by type.
var docs, constants = comments()

func comments() (docs map[string]map[string]string, constants map[string][]string) {
	docs, constants = map[string]map[string]string{}, map[string][]string{}
	files, err := filepath.Glob(filepath.Join(configPackage, "*.go"))
	if err != nil || len(files) == 0 {
		panic(fmt.Sprintf("no Go files in %s: %v", configPackage, err))
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			panic(err)
		}
		for _, declared := range parsed.Decls {
			group, ok := declared.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if fields := fieldComments(spec, group.Doc); fields != nil {
						docs[spec.Name.Name] = fields
					}
				case *ast.ValueSpec:
					if of, value, ok := constant(spec); ok {
						constants[of] = append(constants[of], value)
					}
				}
			}
		}
	}
	return docs, constants
}

// fieldComments are those of a struct's fields; that of the struct is under "".
func fieldComments(spec *ast.TypeSpec, doc *ast.CommentGroup) map[string]string {
	group, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	fields := map[string]string{"": doc.Text()}
	for _, field := range group.Fields.List {
		for _, name := range field.Names {
			fields[name.Name] = field.Doc.Text()
		}
	}
	return fields
}

// constant reads `Name Type = "value"`.
func constant(spec *ast.ValueSpec) (of, value string, ok bool) {
	named, isNamed := spec.Type.(*ast.Ident)
	if !isNamed || len(spec.Values) != 1 {
		return "", "", false
	}
	text, isText := spec.Values[0].(*ast.BasicLit)
	if !isText || text.Kind != token.STRING {
		return "", "", false
	}
	value, err := strconv.Unquote(text.Value)
	return named.Name, value, err == nil
}

// names turns the names of a doc comment into keys of the configuration.
type names struct {
	// paths are those of the groups, by type.
	paths map[string]string
	// keys are the paths of all fields, by struct and name.
	keys map[string]map[string]string
}

func namesOf(all []setting) names {
	n := names{paths: map[string]string{"Config": ""}, keys: map[string]map[string]string{}}
	for _, s := range all {
		if _, known := n.paths[typeName(s.value.Type())]; s.group && !known {
			n.paths[typeName(s.value.Type())] = s.path
		}
		if n.keys[s.owner] == nil {
			n.keys[s.owner] = map[string]string{}
		}
		n.keys[s.owner][s.name] = s.path
	}
	return n
}

var (
	reference  = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]*(\.[A-Z][A-Za-z0-9]*)?\b`)
	goReading  = regexp.MustCompile(` ?See [A-Z][A-Za-z]*\.[A-Z][A-Za-z]*\.`)
	qualified  = regexp.MustCompile(`\b[A-Z][A-Za-z]*\.[A-Z][A-Za-z]*\b`)
	quotedTick = regexp.MustCompile("`[^`]*`")
)

// text is the doc comment of a setting for those who write the file.
func (n names) text(t *testing.T, s setting) string {
	doc := strings.Join(strings.Fields(docs[s.owner][s.name]), " ")
	if doc == "" {
		t.Errorf("%s.%s has no doc comment", s.owner, s.name)
		return ""
	}
	text := n.translate(doc, s)
	if s.group && !s.pair {
		// What the group is was said by its field; the rest by its type, whose
		// names are those of its own fields.
		inner := s
		inner.owner, inner.name = typeName(s.value.Type()), ""
		_, more, _ := strings.Cut(strings.Join(strings.Fields(docs[inner.owner][""]), " ")+" ", ". ")
		text = strings.TrimSpace(text + " " + n.translate(more, inner))
	}
	if left := qualified.FindString(quotedTick.ReplaceAllString(text, "")); left != "" {
		t.Errorf("the comment of %s.%s speaks of %s, which is no setting", s.owner, s.name, left)
	}
	return text
}

// translate takes out what is for readers of the code.
func (n names) translate(doc string, s setting) string {
	doc = goReading.ReplaceAllStringFunc(doc, func(sentence string) string {
		of, name, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(sentence), "See "), "."), ".")
		if n.keys[of][name] != "" {
			return sentence
		}
		return "" // a function
	})
	own := s.path[strings.LastIndexByte(s.path, '.')+1:]
	rest, begins := strings.CutPrefix(doc, s.name)
	if begins && s.name != "" {
		return "`" + own + "`" + n.keysIn(rest, s)
	}
	return n.keysIn(doc, s)
}

func (n names) keysIn(text string, s setting) string {
	var out strings.Builder
	last := 0
	for _, quoted := range append(quotedTick.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		out.WriteString(reference.ReplaceAllStringFunc(text[last:quoted[0]], func(name string) string { return n.key(name, s) }))
		out.WriteString(text[quoted[0]:quoted[1]])
		last = quoted[1]
	}
	return out.String()
}

// key is the path that a name means: Kafka.Topics anywhere, Topics in Kafka.
func (n names) key(name string, s setting) string {
	of, field, isQualified := strings.Cut(name, ".")
	if !isQualified {
		of, field = s.owner, name
	}
	if path := n.keys[of][field]; path != "" && (isQualified || field != s.name) {
		return "`" + path + "`"
	}
	return name
}
