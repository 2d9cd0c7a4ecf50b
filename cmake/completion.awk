# Writes completion for bash from the --help texts of the commands. Each file is named after its command ("graphwire",
# "graphwire-serve", "graphwire-bench-latency").
#
#   awk -f completion.awk graphwire graphwire-serve … > graphwire.bash
#
# An option's value is completed if it is one of a list (--pin=node|core|off), a file or a folder.

# "graphwire-bench-latency" -> "bench latency"
function command_of(file) {
	sub(/.*\//, "", file)
	sub(/^graphwire-?/, "", file)
	sub(/-/, " ", file)
	return file
}

FNR == 1 { command = command_of(FILENAME); commands[++count] = command; examples = 0 }

/^Examples:$/ { examples = 1 }

/^      --[a-z]/ || /^  (-[^ ], )?--[a-z]/ {
	if (examples && substr($0, 1, 6) == "      " && substr($0, 7, 2) != "--") next
	text = $0
	sub(/^ +(-[^ ], )?/, "", text)
	sub(/,? .*/, "", text)
	name = text
	sub(/\[?=.*/, "", name)
	if (index(options[command], " " name)) next
	options[command] = options[command] " " name (name == text ? "" : "=")
	value = substr(text, length(name) + 2)
	if (value ~ /\|/ && value !~ /[A-Z]/) {
		gsub(/\|/, " ", value)
		values[command, name] = "words " value
	} else if (value ~ /FOLDER$/) values[command, name] = "folder"
	else if (value ~ /FILE$/) values[command, name] = "file"
	if ((command, name) in values) order[++rows] = command SUBSEP name
}

END {
	for (i = 1; i <= count; i++) {
		n = split(commands[i], parts, " ")
		if (n == 1) words[""] = words[""] " " parts[1]
		else if (n == 2) words[parts[1]] = words[parts[1]] " " parts[2]
	}
	print "# bash completion for graphwire; made from --help of its commands."
	print "_graphwire() {"
	print "\tlocal word=${COMP_WORDS[COMP_CWORD]} option='' command='' words='' options='' value='' i"
	print "\tif [ \"$word\" = = ]; then"
	print "\t\toption=${COMP_WORDS[COMP_CWORD - 1]} word=''"
	print "\telif [ \"$COMP_CWORD\" -gt 2 ] && [ \"${COMP_WORDS[COMP_CWORD - 1]}\" = = ]; then"
	print "\t\toption=${COMP_WORDS[COMP_CWORD - 2]}"
	print "\telse"
	print "\t\toption=${COMP_WORDS[COMP_CWORD - 1]}"
	print "\tfi"
	print "\tfor ((i = 1; i < COMP_CWORD && i < 3; i++)); do"
	print "\t\tcase \"$command ${COMP_WORDS[i]}\" in"
	for (i = 1; i <= count; i++)
		if (commands[i] != "") print "\t\t" (commands[i] ~ / / ? "\"" commands[i] "\"" : "\" " commands[i] "\"") ") command=\"" commands[i] "\" ;;"
	print "\t\tesac"
	print "\tdone"
	print "\tcase $command in"
	for (i = 1; i <= count; i++)
		print "\t\"" commands[i] "\") words=\"" substr(words[commands[i]], 2) "\" options=\"" substr(options[commands[i]], 2) "\" ;;"
	print "\tesac"
	print "\tcase \"$command $option\" in"
	for (i = 1; i <= rows; i++) {
		split(order[i], parts, SUBSEP)
		print "\t\"" parts[1] " " parts[2] "\") value=\"" values[parts[1], parts[2]] "\" ;;"
	}
	print "\tesac"
	print "\tcase $value in"
	print "\twords*) mapfile -t COMPREPLY < <(compgen -W \"${value#words}\" -- \"$word\") ;;"
	print "\tfile) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;"
	print "\tfolder) mapfile -t COMPREPLY < <(compgen -d -- \"$word\") ;;"
	print "\t*) case $word in"
	print "\t\t-*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\") ;;"
	print "\t\t*) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\") ;;"
	print "\t\tesac"
	print "\t\t[ \"${#COMPREPLY[@]}\" -ne 1 ] || [ \"${COMPREPLY[0]%=}\" = \"${COMPREPLY[0]}\" ] || compopt -o nospace"
	print "\t\t;;"
	print "\tesac"
	print "\t[ \"${value:-file}\" = file ] && [ -n \"$value\" ] && compopt -o filenames"
	print "\treturn 0"
	print "}"
	print "complete -o default -F _graphwire graphwire"
}
