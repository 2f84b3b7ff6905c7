package decode

import (
	"regexp"
	"strings"
)

// How bash splits the start command of a container into simple commands and their words. Nothing here knows what the
// words mean.

// shellWord is a word of a command. If Unknown is set, the text has an expansion whose value is not known.
type shellWord struct {
	Text    string
	Unknown bool
}

// shellVariables returns the value of a variable, if it is known.
type shellVariables func(name string) (value string, known bool)

// expansion is the start of a text that bash replaces: a variable with or without braces, a command, a parameter.
var expansion = regexp.MustCompile(`^(\$\w+|\$\{[^}]*\}|\$\([^)]*\)+|\$[@*#?]|` + "`[^`]*`)")

// shellCommands splits a script into simple commands. It removes quotes, backslashes, comments and redirections, and
// expands variables that are known: outside of double quotes, their values are split at blanks and keep their quotes.
// It ends a command at ; & | ( ) and line ends, whatever they mean, so keywords such as if are words.
func shellCommands(script string, variables shellVariables) [][]shellWord {
	p := shellParser{variables: variables}
	for p.rest = script; p.rest != ""; {
		p.next()
	}
	p.endCommand()
	return p.commands
}

type shellParser struct {
	rest      string
	variables shellVariables
	commands  [][]shellWord
	command   []shellWord
	word      shellWord
	// inWord is set within a word, which may be empty, and redirected before the target of a redirection.
	inWord, redirected bool
}

func (p *shellParser) next() {
	before := p.rest
	c := p.take(1)[0]
	switch {
	case c == ' ' || c == '\t':
		p.endWord()
	case c == '#' && !p.inWord:
		line, _, _ := strings.Cut(p.rest, "\n")
		p.take(len(line))
	case c == '<' || c == '>' || c == '&' && strings.HasPrefix(p.rest, ">"):
		if strings.Trim(p.word.Text, "0123456789") != "" {
			p.endWord()
		}
		p.word, p.inWord, p.redirected = shellWord{}, false, true
		p.take(len(p.rest) - len(strings.TrimLeft(p.rest, "<>&|")))
	case strings.IndexByte(";&|()\n", c) >= 0:
		p.endCommand()
	case c == '\'':
		p.inWord = true
		text, _, _ := strings.Cut(p.rest, "'")
		p.word.Text += p.take(len(text))
		p.take(1)
	case c == '"':
		p.quoted()
	case c == '\\' && p.rest != "":
		if escaped := p.take(1); escaped != "\n" {
			p.add(escaped)
		}
	default:
		p.rest = before
		text, known := p.expand()
		switch {
		case !known:
			p.add(text)
			return
		case text == "":
			return
		}
		for i, field := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n", r) }) {
			if i > 0 || strings.ContainsRune(" \t\n", rune(text[0])) {
				p.endWord()
			}
			p.add(field)
		}
		if strings.ContainsRune(" \t\n", rune(text[len(text)-1])) {
			p.endWord()
		}
	}
}

// quoted reads up to the closing quote. Inside double quotes a backslash escapes only $ ` " \ and a line end.
func (p *shellParser) quoted() {
	p.inWord = true
	for p.rest != "" {
		switch c := p.rest[0]; {
		case c == '"':
			p.take(1)
			return
		case c == '\\' && len(p.rest) > 1 && strings.IndexByte("$`\"\\\n", p.rest[1]) >= 0:
			p.take(1)
			if escaped := p.take(1); escaped != "\n" {
				p.word.Text += escaped
			}
		default:
			text, _ := p.expand()
			p.word.Text += text
		}
	}
}

// expand reads one character, or one expansion. It returns the value of a known variable with known set.
func (p *shellParser) expand() (text string, known bool) {
	found := expansion.FindString(p.rest)
	if found == "" {
		return p.take(1), false
	}
	p.take(len(found))
	if value, known := p.variables(strings.Trim(found, "${}")); known {
		return value, true
	}
	p.word.Unknown = true
	return found, false
}

func (p *shellParser) take(n int) string {
	n = min(n, len(p.rest))
	text := p.rest[:n]
	p.rest = p.rest[n:]
	return text
}

func (p *shellParser) add(text string) {
	p.inWord = true
	p.word.Text += text
}

func (p *shellParser) endWord() {
	if p.inWord && !p.redirected {
		p.command = append(p.command, p.word)
	}
	if p.inWord {
		p.redirected = false
	}
	p.word, p.inWord = shellWord{}, false
}

func (p *shellParser) endCommand() {
	p.endWord()
	if len(p.command) > 0 {
		p.commands = append(p.commands, p.command)
	}
	p.command, p.redirected = nil, false
}

// shellWords returns the words of the first command, without expanding variables.
func shellWords(script string) []string {
	commands := shellCommands(script, func(string) (string, bool) { return "", false })
	if len(commands) == 0 {
		return nil
	}
	var words []string
	for _, word := range commands[0] {
		words = append(words, word.Text)
	}
	return words
}
