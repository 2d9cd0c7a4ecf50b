# Writes the manual page (roff) of a command from its --help text.
#
#   graphwire serve --help | awk -v name=graphwire-serve -v version=0.1.0 -v what='serve a part' -v see=FILE -f manual_command.awk
#
#   "Usage: …"                             SYNOPSIS
#   text at the margin                     DESCRIPTION, one paragraph up to an empty line
#   "      --name=VALUE     what it does"  OPTIONS: an option; lines that are indented further continue it
#   "  word    what it is"                 a word of a list
#   " Words:"                              a heading between options
#   "Examples:", and indented lines        EXAMPLES, verbatim

function plain(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	if (text ~ /^[.']/) text = "\\&" text
	return text
}

function section(title) {
	if (title != now) print ".SH " title
	now = title
	mode = ""
}

function verbatim(line) {
	if (mode != "verbatim") print ".PP\n.nf"
	mode = "verbatim"
	print plain(line)
}

function leave() {
	if (mode == "verbatim") print ".fi"
	mode = ""
}

# A word and its description. Two spaces separate them, or one space in the column where descriptions begin.
function entry(line, where, text, at, indent) {
	leave()
	section(where)
	text = line
	sub(/^ +/, "", text)
	indent = length(line) - length(text)
	at = match(text, /  +/)
	if (!at && substr(line, HELP, 1) == " ") {
		at = HELP - indent
		RLENGTH = 1
	}
	print ".TP\n.B " plain(at ? substr(text, 1, at - 1) : text)
	if (at) print plain(substr(text, at + RLENGTH))
	mode = "entry"
}

BEGIN {
	HELP = 29
	title = toupper(name)
	printf ".TH %s 1 \"\" \"Graphwire %s\" \"Graphwire\"\n.SH NAME\n%s \\- %s\n", plain(title), version, plain(name), plain(what)
}

/^Usage: / {
	print ".SH SYNOPSIS\n.nf\n" plain(substr($0, 8)) "\n.fi"
	synopsis = 1
	next
}
synopsis && /^ +or: / { print ".SH SYNOPSIS\n.nf\n" plain(substr($0, 8)) "\n.fi"; next }
{ synopsis = 0 }

/^ *$/ { if (mode == "verbatim") held = held "\n"; else { mode = ""; gap = 1 }; next }
/^Examples:$/ { leave(); section("EXAMPLES"); next }
/^ [A-Z].*:$/ { leave(); section("OPTIONS"); print ".SS " plain(substr($0, 2, length($0) - 2)); next }
/^      --[a-z]/ || /^  (-[^ ], )?--[a-z]/ {
	held = ""
	entry($0, "OPTIONS")
	next
}
/^  [a-z]+  +[^ ]/ && now != "EXAMPLES" {
	held = ""
	entry($0, now == "" || now == "OPTIONS" ? "COMMANDS" : now)
	next
}
/^                    / && mode == "entry" { sub(/^ +/, ""); print plain($0); next }
/^  / {
	if (held != "" && mode == "verbatim") printf "%s", held
	held = ""
	if (now == "") section("DESCRIPTION")
	verbatim($0)
	next
}
{
	held = ""
	leave()
	if (now != "DESCRIPTION" && now != "NOTES") section(now == "" ? "DESCRIPTION" : "NOTES")
	else if (gap) print ".PP"
	gap = 0
	mode = "text"
	print plain($0)
}

END {
	leave()
	print ".SH SEE ALSO"
	while ((getline line < see) > 0) print line
}
