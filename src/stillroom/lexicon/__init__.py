"""What is publicly known about words: a word list, frequencies, stop words, lemmas, drug and laboratory words.

All of it is fixed before private text is read and never depends on it; `WordList.sha256` names it in a certificate.
"""

from stillroom.lexicon.digests import digests
from stillroom.lexicon.lemmas import lemma
from stillroom.lexicon.protection import protected
from stillroom.lexicon.wordlist import WordList, is_stopword, word_list, zipf

__all__ = ["WordList", "digests", "is_stopword", "lemma", "protected", "word_list", "zipf"]
