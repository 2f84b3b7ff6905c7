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

// expansion is a text that bash replaces: a variable with or without braces, a command, a parameter.
const expansion = `\$\w+|\$\{[^}]*\}|\$\([^)]*\)+|\$[@*#?]|` + "`[^`]*`"

// shellToken is the next piece of a script: blanks, a redirection operator, what ends a command, text in single quotes
// or in double ones, an escaped character, an expansion, or a single character.
var shellToken = regexp.MustCompile(`(?s)^(?:([ \t]+)|(&>[<>&|]*|[<>][<>&|]*)|([;&|()\n])|('[^']*'?)|` +
	`("(?:[^"\\]|\\.)*"?)|\\(.)|(` + expansion + `)|(.))`)

// inQuotes is what bash replaces inside double quotes: an expansion, or one of the characters that \ escapes.
var inQuotes = regexp.MustCompile("(?s)" + expansion + "|\\\\[$`\"\\\\\n]")

// shellCommands splits a script into simple commands. It removes quotes, backslashes, comments and redirections, and
// expands variables that are known: outside of double quotes, their values are split at blanks and keep their quotes.
// It ends a command at ; & | ( ) and line ends, whatever they mean, so keywords such as if are words.
func shellCommands(script string, variables shellVariables) (commands [][]shellWord) {
	var command []shellWord
	var word *shellWord // nil between words
	redirected := false // the next word is the target of a redirection
	add := func(text string) {
		if word == nil {
			word = &shellWord{}
		}
		word.Text += text
	}
	end := func() {
		if word != nil && !redirected {
			command = append(command, *word)
		}
		redirected = redirected && word == nil
		word = nil
	}
	value := func(text string) (string, bool) {
		if value, known := variables(strings.Trim(text, "${}")); known {
			return value, true
		}
		add("")
		word.Unknown = true
		return text, false
	}
	for script != "" {
		if word == nil && script[0] == '#' {
			_, script, _ = strings.Cut(script, "\n")
			script = "\n" + script
		}
		token := shellToken.FindStringSubmatch(script)
		script = script[max(1, len(token[0])):]
		switch blank, redirection, ended := token[1], token[2], token[3]; {
		case blank != "":
			end()
		case redirection != "":
			if word != nil && strings.Trim(word.Text, "0123456789") == "" {
				word = nil // the number of what is redirected
			}
			end()
			redirected = true
		case ended != "":
			end()
			if redirected = false; len(command) > 0 {
				commands, command = append(commands, command), nil
			}
		case token[4] != "":
			add(strings.Trim(token[4], "'"))
		case token[5] != "":
			text := strings.TrimPrefix(token[5], `"`)
			if strings.HasSuffix(token[5], `"`) && len(token[5]) > 1 {
				text = text[:len(text)-1]
			}
			add(inQuotes.ReplaceAllStringFunc(text, func(found string) string {
				if found[0] == '\\' {
					return strings.TrimSuffix(found[1:], "\n")
				}
				text, _ := value(found)
				return text
			}))
		case token[6] != "":
			if token[6] != "\n" {
				add(token[6])
			}
		case token[7] != "":
			text, known := value(token[7])
			if !known {
				add(text)
				continue
			}
			for i, field := range strings.Split(strings.NewReplacer("\t", " ", "\n", " ").Replace(text), " ") {
				if i > 0 {
					end()
				}
				if field != "" {
					add(field)
				}
			}
		default:
			add(token[0])
		}
	}
	if end(); len(command) > 0 {
		commands = append(commands, command)
	}
	return commands
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
