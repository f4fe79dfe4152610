#!/bin/sh
# Takes the pictures for the READMEs from the program itself, so that they show its current state:
#   gui/pictures/make.sh [--programs FOLDER] [--into FOLDER] [--sizes] [NAME...]
#   gui/pictures/make.sh --list
# --programs is the folder of rehearse-gui (default: build/bin), --into the folder for the pictures (default:
# gui/pictures). --sizes takes each picture at three sizes, light and dark, for inspection:
# NAME-1024x700-dark.png. NAME... selects pictures; --list prints their names.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
programs=$root/build/bin into=$here sizes=no list=no names=

# NAME|FILES|VIEW|TAB|SIZE|THEME: files are relative to the build's examples (share/rehearse/examples) or to
# the source tree; TAB is the tab to open in a picture of the entire window.
pictures='
start||window||1280x800|light
pipeline|gpt3-175b.json.gz|window|why|1280x800|light
compare|resnet50-ring.json.gz resnet50-servers.json.gz|window|compare|1280x800|light
measured|predicted.json.gz measured.json.gz|window|compare|1280x800|dark
ranks|resnet50-servers.json.gz|window|ranks|1280x800|light
topology|benchmarks/recorded/emulated/tree-2to1-8-16mb-ring.json.gz|topology||1280x800|light
sweep|scaling.csv|window||1280x800|light
plan|plans/plan.json|window||1280x800|dark
'

while [ $# -gt 0 ]; do
  case $1 in
    --programs) programs=$(cd "$2" && pwd); shift ;;
    --into) into=$(cd "$2" && pwd); shift ;;
    --sizes) sizes=yes ;;
    --list) list=yes ;;
    -*) echo "make.sh: unknown option $1; allowed: --programs, --into, --sizes, --list" >&2; exit 2 ;;
    *) names="$names $1" ;;
  esac
  shift
done
examples=$(dirname "$programs")/share/rehearse/examples

# Arguments: NAME VIEW TAB SIZE THEME FILE...
make() {
  picture=$1 view=$2 tab=$3 size=$4 theme=$5
  shift 5
  "$programs/rehearse-gui" "$@" --screenshot "$into/$picture.png" --view "$view" ${tab:+--tab "$tab"} --size "$size" \
    --scale 1 --theme "$theme"
}

made=0
echo "$pictures" | { while IFS='|' read -r name files view tab size theme; do
  [ -n "$name" ] || continue
  if [ $list = yes ]; then
    echo "$name|$files|$view|$tab|$size|$theme"
    continue
  fi
  case " $names " in "  ") ;; *" $name "*) ;; *) continue ;; esac
  made=$((made + 1))
  set --
  for file in $files; do
    if [ -e "$examples/$file" ]; then set -- "$@" "$examples/$file"; else set -- "$@" "$root/$file"; fi
  done
  if [ $sizes = yes ]; then
    for size in 1024x700 1280x800 2560x1440; do
      for theme in light dark; do make "$name-$size-$theme" "$view" "$tab" "$size" "$theme" "$@"; done
    done
  else
    make "$name" "$view" "$tab" "$size" "$theme" "$@"
  fi
done
if [ $list = no ] && [ $made = 0 ]; then
  echo "make.sh: there is no picture$names (--list prints their names)" >&2
  exit 2
fi; }
